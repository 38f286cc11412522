"""Files findings as issues of a project, each at most once.

An issue contains its finding's key in an HTML comment. Before filing one, we search all issues
with our label for that key, including closed ones. So there is never a second issue, even if
another run filed the first or its answer got lost.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from windlass.domain.values.errors import NotFound
from windlass.fuzzing.config.settings import convert_settings
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.report import render
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.sources.github_api import GitHub
from windlass.ports.clock import Clock


class IssueOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The options under `issues` in the solver file.

    `project` is OWNER/NAME; `token` names the environment variable with the token. Only bugs
    with a known origin are filed, unless `old` is true.
    """

    project: str
    api: str = "https://api.github.com"
    label: str = "fuzzing"
    token: str = "GITHUB_TOKEN"
    old: bool = False


def issue_options(given: Mapping[str, Any]) -> IssueOptions | None:
    """Returns the options, or None if no issues are to be filed."""
    if not given:
        return None
    return convert_settings(dict(given), IssueOptions, "issues")


class IssueTracker:
    """Files the findings of one solver with one project."""

    def __init__(self, options: IssueOptions, solver: str, clock: Clock) -> None:
        self._options = options
        self._solver = solver
        token = os.environ.get(options.token)
        self._api = GitHub(options.api, options.project, token, clock)

    def needs_update(self, finding: Finding) -> bool:
        """Returns whether an issue must be filed, closed or reopened."""
        if finding.state == "closed":
            return bool(finding.issue) and not finding.issue_closed
        if finding.issue:
            return finding.issue_closed
        return self._options.old or finding.last_good is not None

    async def sync(self, store: FindingStore, finding: Finding) -> Finding:
        """Files an open finding, or closes or reopens its issue."""
        if not self.needs_update(finding):
            return finding
        if finding.issue:
            closed = finding.state == "closed"
            number = finding.issue.rpartition("/")[2]
            state = "closed" if closed else "open"
            await self._api.patch(self._api.path("issues", number), {"state": state})
            changes: dict[str, Any] = {"issue_closed": closed}
        else:
            changes = {"issue": await self._file(finding, store.location(finding))}
        return await store.update(
            finding.key, lambda known: msgspec.structs.replace(known or finding, **changes)
        )

    async def sync_all(self, store: FindingStore, notify: Callable[[str], None]) -> list[Finding]:
        """Updates all issues that need it, including those that earlier runs could not update.

        An issue that someone deleted is reported and skipped.
        """
        settled = []
        for finding in [f async for f in store.all(notify) if self.needs_update(f)]:
            try:
                settled.append(await self.sync(store, finding))
            except NotFound as error:
                notify(f"{finding.key}: {error}")
        return settled

    async def close(self) -> None:
        """Closes the connections."""
        await self._api.close()

    async def _file(self, finding: Finding, location: str) -> str:
        """Returns the URL of the finding's issue, and files it if there is none yet."""
        mark = f"<!-- windlass finding {self._solver}/{finding.key} -->"
        label = quote(self._options.label, safe="")
        async for page in self._api.pages(f"{self._api.path('issues')}?state=all&labels={label}"):
            for issue in page:
                if mark in str(issue.get("body") or ""):
                    return str(issue["html_url"])
        body = {
            "title": f"{self._solver}: {finding.title}",
            "body": f"{render(finding, self._solver, location)}\n{mark}\n",
            "labels": [self._options.label],
        }
        made = await self._api.post(self._api.path("issues"), body)
        return str(made["html_url"])

"""Files findings as issues of a project, each at most once.

An issue contains its finding's key in an HTML comment. Before filing one, we search all issues
with our label for that key, including closed ones. So there is never a second issue, even if
another run filed the first or its answer got lost.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from windlass.domain.values.errors import NotFound
from windlass.domain.values.times import format_moment
from windlass.fuzzing.config.settings import convert_settings
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.report import render, summary
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.sources.github_api import GitHub
from windlass.ports.clock import Clock

DAY_MS: Final = 86_400_000
LISTED: Final = 100  # findings in a summary


class IssueOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The options under `issues` in the solver file.

    `project` is OWNER/NAME; `token` names the environment variable with the token. Only bugs
    with a known origin are filed, unless `old` is true. At most `per_run` issues are filed in
    a run and `per_day` in 24 hours; one summary lists the other findings.
    """

    project: str
    api: str = "https://api.github.com"
    label: str = "fuzzing"
    token: str = "GITHUB_TOKEN"
    old: bool = False
    per_run: int = 5
    per_day: int = 20


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
        self._clock = clock
        token = os.environ.get(options.token)
        self._api = GitHub(options.api, options.project, token, clock)

    def needs_update(self, finding: Finding) -> bool:
        """Returns whether an issue must be filed, closed or reopened."""
        if finding.state == "closed":
            return bool(finding.issue) and not finding.issue_closed
        if finding.state != "open":
            return False
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
            address = await self._file(finding, store.location(finding))
            changes = {"issue": address, "issue_at_ms": self._clock.now_ms()}
        return await store.update(
            finding.key, lambda known: msgspec.structs.replace(known or finding, **changes)
        )

    async def sync_all(self, store: FindingStore, notify: Callable[[str], None]) -> list[Finding]:
        """Updates all issues that need it, including those that earlier runs could not update.

        An issue that someone deleted is reported and skipped.
        """
        settled = []
        unfiled = []
        known = [finding async for finding in store.all(notify)]
        left = self._left_today(known)
        for finding in (one for one in known if self.needs_update(one)):
            if not finding.issue and left <= 0:
                unfiled.append(finding)
                continue
            left -= not finding.issue
            try:
                settled.append(await self.sync(store, finding))
            except NotFound as error:
                notify(f"{finding.key}: {error}")
        if unfiled:
            address = await self._summarise(unfiled)
            notify(f"{len(unfiled)} more findings are only in the summary {address}")
        return settled

    def _left_today(self, known: Iterable[Finding]) -> int:
        """Returns how many issues this run may file."""
        since = self._clock.now_ms() - DAY_MS
        today = sum(finding.issue_at_ms > since for finding in known if finding.issue)
        return min(self._options.per_run, self._options.per_day - today)

    async def _summarise(self, unfiled: list[Finding]) -> str:
        """Writes one issue of the day that lists the findings without an issue of their own."""
        day = format_moment(self._clock.now_ms())[:10]
        mark = f"<!-- windlass summary {self._solver} {day} -->"
        rows = [f"- {summary(finding)}" for finding in unfiled[:LISTED]]
        more = f"\n- and {len(unfiled) - LISTED} more" if len(unfiled) > LISTED else ""
        text = (
            f"The fuzzer found more bugs of {self._solver} than it may file as issues "
            f"({self._options.per_run} per run, {self._options.per_day} per day). "
            f"`windlass fuzz findings {self._solver}` lists all of them.\n\n"
        )
        body = text + "\n".join(rows) + more + f"\n{mark}\n"
        title = f"{self._solver}: {len(unfiled)} more findings on {day}"
        known = await self._marked(mark)
        if known is not None:
            number = known.rpartition("/")[2]
            await self._api.patch(self._api.path("issues", number), {"title": title, "body": body})
            return known
        return await self._post(title, body)

    async def close(self) -> None:
        """Closes the connections."""
        await self._api.close()

    async def _file(self, finding: Finding, location: str) -> str:
        """Returns the URL of the finding's issue, and files it if there is none yet."""
        mark = f"<!-- windlass finding {self._solver}/{finding.key} -->"
        known = await self._marked(mark)
        if known is not None:
            return known
        body = f"{render(finding, self._solver, location)}\n{mark}\n"
        return await self._post(f"{self._solver}: {finding.title}", body)

    async def _marked(self, mark: str) -> str | None:
        """Returns the URL of the issue with this mark, open or closed."""
        label = quote(self._options.label, safe="")
        async for page in self._api.pages(f"{self._api.path('issues')}?state=all&labels={label}"):
            for issue in page:
                if mark in str(issue.get("body") or ""):
                    return str(issue["html_url"])
        return None

    async def _post(self, title: str, body: str) -> str:
        content = {"title": title, "body": body, "labels": [self._options.label]}
        made = await self._api.post(self._api.path("issues"), content)
        return str(made["html_url"])

"""Findings as issues of a project, filed once each.

An issue carries its finding's key in a line that people do not see. Before one is filed, the
issues with our label are looked through for it, closed ones too: whoever filed it, and even if
the answer was lost, there is never a second one.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.report import render
from windlass.fuzzing.findings.shelf import Shelf
from windlass.fuzzing.github import GitHub
from windlass.ports.clock import Clock


class IssueOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the description says under `issues`.

    `project` is OWNER/NAME; the token is taken from the environment variable `token`. Only
    bugs that a commit brought in are filed, unless `old` is true.
    """

    project: str
    api: str = "https://api.github.com"
    label: str = "fuzzing"
    token: str = "GITHUB_TOKEN"
    old: bool = False


def issue_options(given: Mapping[str, Any]) -> IssueOptions | None:
    """The options, or None where no issues are to be filed."""
    if not given:
        return None
    try:
        return msgspec.convert(dict(given), IssueOptions)
    except msgspec.ValidationError as error:
        raise InvalidInput("issues", f"options that fit ({error})", dict(given)) from None


class IssueDesk:
    """Files findings with one project."""

    def __init__(self, options: IssueOptions, solver: str, clock: Clock) -> None:
        self._options = options
        self._solver = solver
        token = os.environ.get(options.token)
        self._api = GitHub(options.api, options.project, token, clock)

    def waits(self, finding: Finding) -> bool:
        """Whether there is something to say of it: a new bug, one that is gone, or back."""
        if finding.state == "closed":
            return bool(finding.issue) and not finding.issue_closed
        if finding.issue:
            return finding.issue_closed
        return self._options.old or finding.last_good is not None

    async def settle(self, shelf: Shelf, finding: Finding) -> Finding:
        """File an open finding; close the issue of a closed one, open it if that came back."""
        if not self.waits(finding):
            return finding
        if finding.issue:
            closed = finding.state == "closed"
            number = finding.issue.rpartition("/")[2]
            state = "closed" if closed else "open"
            await self._api.patch(self._api.path("issues", number), {"state": state})
            said: dict[str, Any] = {"issue_closed": closed}
        else:
            said = {"issue": await self._file(finding, shelf.location(finding))}
        return await shelf.update(
            finding.key, lambda known: msgspec.structs.replace(known or finding, **said)
        )

    async def settle_all(self, shelf: Shelf, told: Callable[[str], None]) -> list[Finding]:
        """All that wait, also those of earlier runs whose project did not answer.

        An issue that somebody removed is passed over, for the others' sake.
        """
        settled = []
        for finding in [f async for f in shelf.all(told) if self.waits(f)]:
            try:
                settled.append(await self.settle(shelf, finding))
            except NotFound as error:
                told(f"{finding.key}: {error}")
        return settled

    async def close(self) -> None:
        """End the connections."""
        await self._api.close()

    async def _file(self, finding: Finding, location: str) -> str:
        """The address of the finding's issue, filed now or before."""
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

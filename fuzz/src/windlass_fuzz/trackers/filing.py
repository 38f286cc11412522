"""Files findings as issues of a project, each at most once.

An issue contains its finding's key in an HTML comment. Before filing one, we search all issues with
our label for that key, including closed ones, and claim the finding's record. So there is never a
second issue, even if another run filed the first or its answer got lost.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import msgspec

from windlass.domain.values.errors import Conflict, NotFound, WindlassError
from windlass.domain.values.quantities import format_moment
from windlass.ports.clock import Clock
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.severity import by_severity
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.sources.http_api import Refused
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.trackers.branch_notes import has_branch_news, told_now
from windlass_fuzz.trackers.github import GitHubTracker
from windlass_fuzz.trackers.gitlab import GitLabTracker
from windlass_fuzz.trackers.issue_text import (
    ATTACHED,
    branch_note,
    mark_of,
    note_of,
    summary_of,
    text_of,
)
from windlass_fuzz.trackers.options import IssueOptions, TrackerName, issue_options
from windlass_fuzz.trackers.tracker import IssueText, Tracker
from windlass_fuzz.trackers.webhook import WebhookTracker

DAY_MS: Final = 86_400_000
CLAIM_MS: Final = 10 * 60_000  # after this, a run that claimed a finding counts as killed

TRACKERS: Final[Mapping[TrackerName, Callable[[IssueOptions, Clock], Tracker]]] = {
    "github": GitHubTracker,
    "gitlab": GitLabTracker,
    "webhook": WebhookTracker,
}


class NoProject(Conflict):
    """The project does not exist, has issues disabled, or is not visible to the token."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do with the issue of a finding, or with the summary."""

    action: Literal["open", "close", "reopen", "update", "summary"]
    title: str
    key: str = ""
    where: str = ""
    private: bool = False
    labels: list[str] = []
    input: Literal["attached", "withheld", ""] = ""


class IssueFiler:
    """Files the findings of one solver with one project; `refused` are findings it could not
    file.
    """

    def __init__(self, options: IssueOptions, solver: str, clock: Clock) -> None:
        self._options = options
        self._solver = solver
        self._clock = clock
        self._opened: Tracker | None = None
        self.refused: list[str] = []

    def needs_update(self, finding: Finding) -> bool:
        """Returns whether an issue must be filed, closed, reopened or told about branches."""
        if finding.state == "closed":
            return bool(finding.issue) and not finding.issue_closed
        if finding.state != "open":
            return False
        if finding.issue:
            return finding.issue_closed or has_branch_news(finding)
        return self._options.old or finding.last_good is not None

    async def plan(self, store: FindingStore, notify: Callable[[str], None]) -> list[Step]:
        """Returns what `sync_all` would do; asks no tracker and changes nothing."""
        due, unfiled = self._divide([finding async for finding in store.all(notify)])
        steps = [self._step(finding) for finding in due]
        if unfiled:
            issue = self._summary(unfiled)
            where = self._options.project or self._options.url
            steps.append(
                Step(action="summary", title=issue.title, where=where, labels=issue.labels)
            )
        return steps

    async def sync_all(self, store: FindingStore, notify: Callable[[str], None]) -> list[Finding]:
        """Updates all issues that need it, including those that earlier runs could not update.

        An issue that someone deleted, a text that the tracker does not accept, and a project that
        does not exist are reported and skipped: private findings may have another project.
        """
        settled = []
        due, unfiled = self._divide([finding async for finding in store.all(notify)])
        for finding in due:
            try:
                settled.append(await self.sync(store, finding))
            except NotFound as error:
                notify(f"{finding.key}: its issue is gone: {error}")
            except (Refused, NoProject) as error:
                self.refused.append(finding.key)
                notify(f"{finding.key} was not filed: {error}")
        if unfiled:
            address = await self._summarise(unfiled)
            notify(f"{len(unfiled)} more findings are only in the summary {address}")
        return settled

    async def sync(self, store: FindingStore, finding: Finding) -> Finding:
        """Files an open finding, or closes, reopens or updates its issue."""
        if not self.needs_update(finding):
            return finding
        if not finding.issue:
            return await self._file_claimed(store, finding)
        if _is_update(finding):
            return await self._tell_branches(store, finding)
        closed = finding.state == "closed"
        change = self._tracker.close if closed else self._tracker.reopen
        note = note_of(finding, self._solver)
        address = await self._at_issue(finding, lambda place: change(place, note))
        told = told_now(finding)
        return await _set(store, finding, issue=address, issue_closed=closed, issue_branches=told)

    async def close(self) -> None:
        """Closes the connections."""
        if self._opened is not None:
            await self._opened.disconnect()

    @property
    def _tracker(self) -> Tracker:
        if self._opened is None:
            self._opened = TRACKERS[self._options.tracker](self._options, self._clock)
        return self._opened

    def _divide(self, known: list[Finding]) -> tuple[list[Finding], list[Finding]]:
        """Returns what to update now, and what is over the limits."""
        due: list[Finding] = []
        unfiled: list[Finding] = []
        left = self._left_today(known)
        wanted = sorted(filter(self.needs_update, known), key=by_severity)
        for finding in wanted:
            if not finding.issue:
                (due if left > 0 else unfiled).append(finding)
                left -= 1
            elif not _is_update(finding):
                due.append(finding)
        # A later run reports what is over the limits, together with later changes.
        return [*due, *list(filter(_is_update, wanted))[: max(left, 0)]], unfiled

    def _left_today(self, known: Iterable[Finding]) -> int:
        """Returns how many issues this run may file, or tell about branches."""
        since = self._clock.now_ms() - DAY_MS
        today = sum(
            (finding.issue_at_ms > since) + (finding.issue_told_ms > since)
            for finding in known
            if finding.issue
        )
        return min(self._options.per_run, self._options.per_day - today)

    def _step(self, finding: Finding) -> Step:
        options = self._options
        if finding.issue:
            action: Literal["close", "reopen", "update"] = "update"
            if not _is_update(finding):
                action = "close" if finding.state == "closed" else "reopen"
            return Step(action=action, key=finding.key, title=finding.title, where=finding.issue)
        private = options.is_private(finding)
        return Step(
            action="open", key=finding.key, title=f"{self._solver}: {finding.title}",
            where=options.project_for(private) or options.url, private=private,
            labels=options.labels_for(finding),
            input="attached" if options.attach_input else "withheld",
        )  # fmt: skip

    async def _file_claimed(self, store: FindingStore, finding: Finding) -> Finding:
        """Files a finding unless another run is doing so."""

        async def file(claimed: Finding) -> dict[str, Any]:
            address = await self._file(store, claimed)
            now = self._clock.now_ms()
            return {"issue": address, "issue_at_ms": now, "issue_branches": told_now(claimed)}

        return await self._claimed(store, finding, lambda known: not known.issue, file)

    async def _tell_branches(self, store: FindingStore, finding: Finding) -> Finding:
        """Adds to an issue which branches have changed, unless another run is doing so."""

        async def tell(claimed: Finding) -> dict[str, Any]:
            note = branch_note(claimed, self._solver)
            address = await self._at_issue(
                claimed, lambda place: self._tracker.comment(place, note)
            )
            return {
                "issue": address, "issue_branches": told_now(claimed),
                "issue_updates": claimed.issue_updates + 1, "issue_told_ms": self._clock.now_ms(),
            }  # fmt: skip

        return await self._claimed(store, finding, _is_update, tell)

    async def _at_issue(self, finding: Finding, act: Callable[[str], Awaitable[None]]) -> str:
        """Acts on the issue of a finding and returns its address.

        If it is missing, the project may have been renamed: we search for the mark.
        """
        try:
            await act(finding.issue)
        except NotFound:
            private = self._options.is_private(finding)
            found = await self._tracker.find(mark_of(finding, self._solver), private)
            if found is None or found == finding.issue:
                raise
            await act(found)
            return found
        return finding.issue

    async def _claimed(
        self,
        store: FindingStore,
        finding: Finding,
        wanted: Callable[[Finding], bool],
        act: Callable[[Finding], Awaitable[dict[str, Any]]],
    ) -> Finding:
        """Does something with the issue that only one run may do, and records the result."""
        now = self._clock.now_ms()
        won = False

        def claim(known: Finding | None) -> Finding:
            nonlocal won
            before = known or finding
            won = wanted(before) and now - before.issue_claim_ms >= CLAIM_MS
            return msgspec.structs.replace(before, issue_claim_ms=now) if won else before

        claimed = await store.update(finding.key, claim)
        if not won:
            return claimed
        try:
            changes = await act(claimed)
        except BaseException:
            await _set(store, claimed, issue_claim_ms=0)
            raise
        return await _set(store, claimed, issue_claim_ms=0, **changes)

    async def _file(self, store: FindingStore, finding: Finding) -> str:
        """Returns the address of the finding's issue, and files it if there is none yet."""
        data = await self._input(store, finding)
        location = store.location(finding)
        issue = text_of(finding, self._solver, location, self._options, data)
        return await self._in_project(self._find_or_open(issue), issue.private)

    async def _find_or_open(self, issue: IssueText) -> str:
        known = await self._tracker.find(issue.mark, issue.private)
        return known or await self._tracker.open(issue)

    async def _in_project(self, work: Awaitable[str], private: bool) -> str:
        """Awaits a call to a project; a missing project is not the finding's fault."""
        options = self._options
        try:
            return await work
        except NotFound as error:
            place = options.project_for(private)
            advice = "check issues.url"
            if place:
                advice = (
                    f"check the name {place}, its issues, and the permissions of {options.variable}"
                )
            raise NoProject("no_project", f"{error}; {advice}") from None

    async def _input(self, store: FindingStore, finding: Finding) -> bytes | None:
        """Returns the input of a finding if it is to be attached and is short enough."""
        if not self._options.attach_input or finding.size > ATTACHED:
            return None
        with TemporaryDirectory() as folder:
            path = Path(folder, "input")
            return path.read_bytes() if await store.fetch_input(finding, path) else None

    def _summary(self, unfiled: list[Finding]) -> IssueText:
        day = format_moment(self._clock.now_ms())[:10]
        return summary_of(unfiled, self._solver, day, self._options)

    async def _summarise(self, unfiled: list[Finding]) -> str:
        """Writes one issue of the day that lists the findings without an issue of their own."""
        return await self._in_project(self._put_summary(self._summary(unfiled)), False)

    async def _put_summary(self, issue: IssueText) -> str:
        known = await self._tracker.find(issue.mark, False)
        if known is None:
            return await self._tracker.open(issue)
        await self._tracker.rewrite(known, issue)
        return known


def _is_update(finding: Finding) -> bool:
    """Returns whether only the branches of an open issue are news."""
    open_issue = finding.state == "open" and bool(finding.issue) and not finding.issue_closed
    return open_issue and has_branch_news(finding)


async def _set(store: FindingStore, finding: Finding, **changes: Any) -> Finding:
    return await store.update(
        finding.key, lambda known: msgspec.structs.replace(known or finding, **changes)
    )


async def update_issues(
    solver: Solver, pipeline: Pipeline, notify: Callable[[str], None]
) -> list[str]:
    """Updates issues and returns their addresses; if the project does not answer, the next run
    does it.
    """
    options = issue_options(solver.issues)
    if options is None:
        return []
    filer = IssueFiler(options, solver.name, pipeline.runtime.clock)
    try:
        return [one.issue for one in await filer.sync_all(FindingStore(pipeline), notify)]
    except WindlassError as error:
        notify(f"could not update issues: {error}")
        return []
    finally:
        await filer.close()

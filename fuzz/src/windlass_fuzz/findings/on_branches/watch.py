"""Judges the findings of a run on each watched branch, and dates them there."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from windlass_fuzz.findings.on_branches.rule import facts_of, judge
from windlass_fuzz.findings.record import Finding, OnBranch, Origin
from windlass_fuzz.sources.branches import choose
from windlass_fuzz.sources.commits import Head
from windlass_fuzz.sources.mirror import MAX_COMMITS, Mirror


@dataclass(slots=True)
class GitAncestry:
    """Answers from a mirror, each question once; do not fetch the mirror meanwhile."""

    mirror: Mirror
    heads: dict[str, str] = field(default_factory=dict)
    _holders: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    _lines: dict[str, frozenset[str]] = field(default_factory=dict)
    _order: dict[tuple[str, str], bool] = field(default_factory=dict)

    async def holds(self, branch: str, commit: str) -> bool:
        """Returns whether a branch contains a commit."""
        if commit not in self._holders:
            self._holders[commit] = await self.mirror.branches_with(commit)
        return (branch, self.heads[branch]) in self._holders[commit]

    async def on_line(self, branch: str, commit: str) -> bool:
        """Returns whether a commit is on the branch's line of first parents."""
        if branch not in self._lines:
            line = await self.mirror.first_parents(self.heads[branch], MAX_COMMITS)
            self._lines[branch] = frozenset(line)
        return commit in self._lines[branch]

    async def before(self, one: str, other: str) -> bool:
        """Returns whether `other` is a descendant of `one`."""
        if (one, other) not in self._order:
            found = one != other and await self.mirror.is_ancestor(one, other)
            self._order[one, other] = found
        return self._order[one, other]


@dataclass(slots=True)
class BranchWatch:
    """The watched branches of a solver, as they are in the mirror at the first question."""

    mirror: Mirror
    wanted: Sequence[str]
    heads: tuple[Head, ...] | None = None
    ancestry: GitAncestry = field(init=False)

    def __post_init__(self) -> None:
        self.ancestry = GitAncestry(self.mirror)

    def concerns(self, finding: Finding) -> bool:
        """Returns whether branches matter: there are several, or were when it was found."""
        return len(self.wanted) > 1 or bool(finding.branches)

    async def judge(self, finding: Finding, fine: str | None) -> list[OnBranch]:
        """Returns what is known of a finding on each branch, unwatched ones last."""
        facts = facts_of(finding, fine)
        known = {one.name: one for one in finding.branches}
        found = []
        for head in await self._watched():
            entry = await judge(
                known.pop(head.name, None), head.name, head.commit, facts, self.ancestry
            )
            if entry is not None:
                found.append(await self._date(entry, head, finding))
        return [*found, *(msgspec.structs.replace(one, watched=False) for one in known.values())]

    async def leads_through(self, commit: str) -> bool:
        """Returns whether a commit is on the line of a watched branch, or no branch is known."""
        heads = await self._watched()
        on_line = [await self.ancestry.on_line(head.name, commit) for head in heads]
        return not heads or any(on_line)

    async def _watched(self) -> tuple[Head, ...]:
        if self.heads is None:
            self.heads = choose(self.wanted, await self.mirror.heads()).heads
            self.ancestry.heads = {head.name: head.commit for head in self.heads}
        return self.heads

    async def _date(self, entry: OnBranch, head: Head, finding: Finding) -> OnBranch:
        """Dates a bug on a branch, if one of its origins is on that branch too."""
        if entry.exact or entry.back:
            return entry
        for origin in reversed(finding.origins):
            if origin.gone_in is None and await self.ancestry.holds(head.name, origin.first_bad):
                return await self._dated(entry, head, origin)
        on_line = [await self.ancestry.on_line(head.name, shown) for shown in entry.shown]
        if not entry.shown or any(on_line):
            return entry  # a search from there tells more
        since = await self.mirror.first_with(entry.shown[0], head.commit)
        return msgspec.structs.replace(entry, since=since, merge=since)

    async def _dated(self, entry: OnBranch, head: Head, origin: Origin) -> OnBranch:
        since = await self.mirror.first_with(origin.first_bad, head.commit)
        merge = None if since == origin.first_bad else since
        return msgspec.structs.replace(entry, since=since, merge=merge, exact=origin.exact)

    async def undated(self, finding: Finding) -> list[tuple[str, str]]:
        """Returns branches on which the bug is alive for an unknown time.

        Each comes with a commit on its line of first parents that failed.
        """
        found = []
        for entry in finding.branches:
            if not entry.watched or entry.state != "alive" or entry.since is not None:
                continue
            for shown in entry.shown:
                if await self.ancestry.on_line(entry.name, shown):
                    found.append((entry.name, shown))
                    break
        return found

    async def searched(self, entry: OnBranch, origin: Origin) -> OnBranch:
        """Returns the result of a search on the branch's own line."""
        since = origin.line_bad or origin.first_bad
        merge = since if len(await self.mirror.parents(since)) > 1 else None
        return msgspec.structs.replace(entry, since=since, merge=merge, exact=origin.exact)

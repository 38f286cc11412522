"""When a bug is alive or fixed on a branch, and when a finding is closed (decision 031).

A bug is on every watched branch that contains a commit that showed it, also through merges. Only a
commit on the branch's own line of first parents can fix it there: a merge may drop the changes of
what it merges.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from windlass_fuzz.findings.evidence import inputs_of
from windlass_fuzz.findings.record import Finding, KeptInput, OnBranch
from windlass_fuzz.findings.sightings import mark_closed

NEW_INPUT = "an input was found after the last run of a commit of this branch"
MOVED = "the branch was moved, and none of its commits has run the inputs since"


class Ancestry(Protocol):
    """What the rule asks the repository."""

    async def holds(self, branch: str, commit: str) -> bool:
        """Returns whether a branch contains a commit."""
        ...

    async def on_line(self, branch: str, commit: str) -> bool:
        """Returns whether a commit is on the branch's line of first parents."""
        ...

    async def before(self, one: str, other: str) -> bool:
        """Returns whether `other` is a descendant of `one`."""
        ...


class Fix(NamedTuple):
    """A commit that ran these inputs fine."""

    commit: str
    inputs: frozenset[str]


class Facts(NamedTuple):
    """What is known about a finding: commits that showed it, its inputs, and the commits that ran
    them fine.

    With a matrix, an input counts once for each combination that it broke.
    """

    seen: tuple[str, ...]
    inputs: frozenset[str]
    fixes: tuple[Fix, ...] = ()


def facts_of(finding: Finding, fine: str | None) -> Facts:
    """Returns the facts of a record; `fine` is a commit that has just run all inputs fine.

    The search ran the first bad build of each origin.
    """
    searched = [origin.first_bad for origin in finding.origins]
    seen = dict.fromkeys([finding.found_in, *finding.seen_in, *searched])
    inputs = frozenset(run for one in inputs_of(finding) for run in _runs_of(one))
    known = [Fix(e.fixed_in, frozenset(e.fixed_with)) for e in finding.branches if e.fixed_in]
    return Facts(tuple(seen), inputs, (*known, *([Fix(fine, inputs)] if fine else [])))


def _runs_of(one: KeptInput) -> list[str]:
    """Returns what has to run fine: the input, with each combination that it broke."""
    return [f"{one.name}@{name}" for name in one.combinations] or [one.name]


async def judge(
    known: OnBranch | None, name: str, head: str, facts: Facts, ancestry: Ancestry
) -> OnBranch | None:
    """Returns what is known about a bug on a branch; None if it never was there."""
    entry = known or OnBranch(name=name)
    commits = dict.fromkeys([*entry.shown, *facts.seen])
    here = [commit for commit in commits if await ancestry.holds(name, commit)]
    if known is None and not here:
        return None
    moved_to = entry.moved_to
    lost = [commit for commit in entry.shown if commit not in here]
    if lost or (moved_to and not await ancestry.holds(name, moved_to)):
        # Any rewritten commit may have the bug, so only this head or a later one can be its fix.
        moved_to = head
        entry = msgspec.structs.replace(entry, since=None, merge=None, exact=False)
    entry = msgspec.structs.replace(
        entry, shown=await newest(here, ancestry), moved_to=moved_to, watched=True
    )
    valid = entry.fixed_in is not None and await _fixes(entry, entry.fixed_in, ancestry)
    complete = valid and facts.inputs <= set(entry.fixed_with)
    for fix in () if complete else facts.fixes:
        if facts.inputs <= fix.inputs and await _is_fix(entry, fix.commit, ancestry):
            entry = msgspec.structs.replace(
                entry, fixed_in=fix.commit, fixed_with=sorted(fix.inputs)
            )
            return _stated(entry, True, True)
    return _stated(entry, valid, complete)


async def newest(commits: Sequence[str], ancestry: Ancestry) -> list[str]:
    """Returns the commits that none of the others descends from."""
    found: list[str] = []
    for commit in commits:
        if any([await ancestry.before(commit, other) for other in found]):
            continue
        found = [other for other in found if not await ancestry.before(other, commit)]
        found.append(commit)
    return found


async def _is_fix(entry: OnBranch, commit: str, ancestry: Ancestry) -> bool:
    """Returns whether a commit is on the branch's own line and comes after what showed the bug."""
    return await ancestry.on_line(entry.name, commit) and await _fixes(entry, commit, ancestry)


async def _fixes(entry: OnBranch, commit: str, ancestry: Ancestry) -> bool:
    """Returns whether a commit comes after all commits of the branch that showed the bug."""
    if not await ancestry.holds(entry.name, commit):
        return False
    for shown in entry.shown:
        if not await ancestry.before(shown, commit):
            return False
    moved_to = entry.moved_to
    return moved_to in (None, commit) or await ancestry.before(str(moved_to), commit)


def _stated(entry: OnBranch, valid: bool, complete: bool) -> OnBranch:
    if complete:
        return msgspec.structs.replace(entry, state="fixed", why="")
    if valid:
        return msgspec.structs.replace(entry, state="unsure", why=NEW_INPUT)
    back = entry.back or entry.fixed_in is not None
    since = {} if entry.fixed_in is None else {"since": None, "merge": None, "exact": False}
    state, why = ("alive", "") if entry.shown else ("unsure", MOVED)
    return msgspec.structs.replace(
        entry, state=state, why=why, back=back, fixed_in=None, fixed_with=[], **since
    )


async def ends_of(
    known: Finding, entries: Iterable[OnBranch], ancestry: Ancestry
) -> dict[str, str]:
    """Returns for each origin, by its first bad commit, a fix that comes after it."""
    fixes = [one.fixed_in for one in entries if one.watched and one.fixed_in]
    return {
        origin.first_bad: fix
        for origin in known.origins
        for fix in reversed(fixes)
        if await ancestry.before(origin.first_bad, fix)
    }


def settled(
    known: Finding, entries: Iterable[OnBranch], ends: Mapping[str, str], now_ms: int
) -> Finding:
    """Returns the record with what is known about each branch; closed if it is alive on none.

    `ends` are the commits that end origins, if it is closed.
    """
    branches = list(entries)
    after = msgspec.structs.replace(known, branches=branches)
    watched = [one for one in branches if one.watched]
    if not branches or not known.live or known.state == "quarantined":
        return after
    if not watched:
        names = ", ".join(one.name for one in branches)
        closed = mark_closed(after, None, now_ms)
        return msgspec.structs.replace(closed, closed_why=f"no longer watched: {names}")
    if all(one.state == "fixed" for one in watched):
        origins = [
            msgspec.structs.replace(one, gone_in=one.gone_in or ends.get(one.first_bad))
            for one in after.origins
        ]
        ended = msgspec.structs.replace(after, origins=origins)
        return mark_closed(ended, watched[0].fixed_in, now_ms)
    return after

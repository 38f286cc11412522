"""The rule for branches, on random histories: nothing is fixed without the evidence for it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.running import run
from windlass_fuzz.findings.on_branches.rule import (
    Facts,
    Fix,
    ends_of,
    judge,
    newest,
    settled,
)
from windlass_fuzz.findings.record import Finding, OnBranch, Origin

BRANCHES = ("main", "release")
REMEMBERED = 3  # commits that showed it; a record forgets older ones


@dataclass
class Graph:
    """Commits by number with their parents, and the heads of branches."""

    parents: list[tuple[int, ...]]
    heads: dict[str, int] = field(default_factory=dict)

    def ancestors(self, commit: int) -> set[int]:
        """Returns a commit and all before it."""
        found: set[int] = set()
        waiting = [commit]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.parents[one]
        return found

    def line(self, commit: int) -> set[int]:
        found = {commit}
        while self.parents[commit]:
            commit = self.parents[commit][0]
            found.add(commit)
        return found

    async def holds(self, branch: str, commit: str) -> bool:
        return int(commit) in self.ancestors(self.heads[branch])

    async def on_line(self, branch: str, commit: str) -> bool:
        return int(commit) in self.line(self.heads[branch])

    async def before(self, one: str, other: str) -> bool:
        return one != other and int(one) in self.ancestors(int(other))


class Event(NamedTuple):
    """A run of a commit that failed, with a new input or a known one, or was fine.

    Before it, branches may move, also by force.
    """

    commit: int
    what: str
    moves: dict[str, int]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    parents: list[tuple[int, ...]] = [()]
    for number in range(1, draw(st.integers(2, 6))):
        first = number - 1 if draw(st.booleans()) else draw(st.integers(0, number - 1))
        other = draw(st.one_of(st.none(), st.none(), st.integers(0, number - 1)))
        parents.append((first,) if other in (None, first) else (first, int(other or 0)))
    commits = st.integers(0, len(parents) - 1)
    return Graph(parents, {name: draw(commits) for name in BRANCHES})


@st.composite
def stories(draw: st.DrawFn, *, moving: bool) -> tuple[Graph, list[Event]]:
    graph = draw(graphs())
    commits = st.integers(0, len(graph.parents) - 1)
    moves = st.dictionaries(st.just("main"), commits, max_size=1)
    events = st.builds(
        Event, commits, st.sampled_from(["fails", "new input", "fine", "fine"]),
        moves if moving else st.just({}),
    )  # fmt: skip
    return graph, draw(st.lists(events, min_size=3, max_size=12))


class Story:
    """Plays events as runs of fuzzers do, and keeps a log of everything."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.seen: list[int] = []
        self.inputs = 1
        self.fine: list[tuple[int, int]] = []  # a commit, and how many inputs it ran
        self.entries: dict[str, OnBranch] = {}
        self.shown: dict[str, set[int]] = {name: set() for name in BRANCHES}
        self.barrier: dict[str, int | None] = dict.fromkeys(BRANCHES)

    async def play(self, event: Event) -> None:
        if event.what == "fine" and event.commit in self.seen:
            return  # a build that fails with an input goes on failing with it
        self.graph.heads.update(event.moves)
        fixes = [Fix(str(e.fixed_in), frozenset(e.fixed_with)) for e in self.entries.values()
                 if e.fixed_in]  # fmt: skip
        if event.what == "fine":
            self.fine.append((event.commit, self.inputs))
            fixes.append(Fix(str(event.commit), self.names))
        else:
            self.inputs += event.what == "new input"
            self.seen.append(event.commit)
        recent = tuple(dict.fromkeys(map(str, self.seen[-REMEMBERED:])))
        facts = Facts(recent, self.names, tuple(fixes))
        for name in BRANCHES:
            self._note(name)
            known, head = self.entries.get(name), str(self.graph.heads[name])
            entry = await judge(known, name, head, facts, self.graph)
            if entry is not None:
                self.entries[name] = entry

    @property
    def names(self) -> frozenset[str]:
        return frozenset(map(str, range(self.inputs)))

    def _note(self, name: str) -> None:
        """Notes what a branch shows and has lost, from the whole log."""
        held = self.graph.ancestors(self.graph.heads[name])
        barrier = self.barrier[name]
        if self.shown[name] - held or (barrier is not None and barrier not in held):
            self.barrier[name] = self.graph.heads[name]
        recent = set(self.seen[-REMEMBERED:])
        self.shown[name] = (self.shown[name] | recent) & held

    def may_be_fixed(self, name: str) -> bool:
        """Returns whether the whole log has the evidence for a fix on a branch."""
        barrier = self.barrier[name]
        for commit, inputs in self.fine:
            older = self.graph.ancestors(commit)
            after = self.shown[name] <= older - {commit}
            if after and inputs == self.inputs and (barrier is None or barrier in older):
                return True
        return False


@settings(max_examples=400)
@given(stories(moving=True))
def test_nothing_is_fixed_without_evidence(story: tuple[Graph, list[Event]]) -> None:
    graph, events = story
    told = Story(graph)

    async def play() -> None:
        for event in events:
            await told.play(event)
            for name, entry in told.entries.items():
                if entry.state == "fixed":
                    assert told.may_be_fixed(name), (name, entry)
                    assert entry.fixed_in is not None
                    assert int(entry.fixed_in) in graph.ancestors(graph.heads[name])

    run(play())


@given(stories(moving=False))
def test_a_bug_is_on_every_branch_that_contains_it_and_a_fine_head_fixes_it(
    story: tuple[Graph, list[Event]],
) -> None:
    graph, events = story
    told = Story(graph)

    async def play() -> None:
        for event in events:
            await told.play(event)
        for name in BRANCHES:
            held = graph.ancestors(graph.heads[name])
            assert (name in told.entries) == bool(held & set(told.seen))
        for name, head in graph.heads.items():
            await told.play(Event(head, "fine", {}))
            if name in told.entries and head not in told.seen:
                assert told.entries[name].state == "fixed"

    run(play())


@given(graphs(), st.data())
def test_only_the_newest_commits_are_kept(graph: Graph, data: st.DataObject) -> None:
    numbers = st.integers(0, len(graph.parents) - 1)
    commits = data.draw(st.lists(numbers, unique=True))
    found = {int(one) for one in run(newest([str(one) for one in commits], graph))}
    for one in commits:
        later = [other for other in commits if other != one and one in graph.ancestors(other)]
        assert (one in found) == (not later)


def a_finding(*branches: OnBranch) -> Finding:
    return Finding(
        key="k", title="t", engine="command", command=[], input="i", size=1, shown=1, tried=1,
        found_in="0", found_at_ms=0, branches=list(branches),
    )  # fmt: skip


STATES = st.sampled_from(["alive", "fixed", "unsure"])


@given(st.lists(st.tuples(STATES, st.booleans()), max_size=4))
def test_a_finding_is_closed_when_no_watched_branch_keeps_it(
    drawn: list[tuple[str, bool]],
) -> None:
    entries = [
        OnBranch(name=f"b{number}", state=state, watched=watched, fixed_in="1")  # type: ignore[arg-type]
        for number, (state, watched) in enumerate(drawn)
    ]
    after = settled(a_finding(), entries, {}, 5)
    keeping = [one for one in entries if one.watched and one.state != "fixed"]
    assert (after.state == "closed") == (bool(entries) and not keeping)
    if after.state == "closed":
        assert (after.closed_in is not None) == any(one.watched for one in entries)
        assert bool(after.closed_why) == (after.closed_in is None)


def test_each_origin_ends_with_a_fix_that_comes_after_it() -> None:
    graph = Graph([(), (0,), (0,), (1,), (2,)], {"main": 3, "release": 4})
    entries = [
        OnBranch(name="main", state="fixed", fixed_in="3"),
        OnBranch(name="release", state="fixed", fixed_in="4"),
    ]
    known = a_finding(*entries)
    origins = [Origin(first_bad="1"), Origin(first_bad="2"), Origin(first_bad="0")]
    known.origins.extend(origins)
    ends = run(ends_of(known, entries, graph))
    assert ends == {"1": "3", "2": "4", "0": "3"}
    closed = settled(known, entries, ends, 5)
    assert [one.gone_in for one in closed.origins] == ["3", "4", "3"]

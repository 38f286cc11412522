"""One workflow in memory: its graph, and the states of its jobs."""

import re
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.graphs.critical import Chain, Estimate, Progress, Times
from windlass.domain.graphs.graph import Graph, GraphBuilder
from windlass.domain.graphs.groups import stem_of
from windlass.domain.graphs.view import Levels, View
from windlass.domain.job.kinds import kinds_of
from windlass.domain.rows.records import BY_OPERATOR, JobFacts
from windlass.domain.rows.views import JobMoment

MAX_KINDS: Final = 2_000  # told apart by name; others by their shape
VIEWS: Final = 8  # sets of open groups that are cached

_RESULT: Final = re.compile(rb'"\$result":\s*\d+')


class _Spec(msgspec.Struct, frozen=True, gc=False):
    """The fields of a stored job that its place in a graph needs."""

    name: str | None = None
    after: list[int] = []
    after_any: list[int] = []


class _Arguments(msgspec.Struct, frozen=True, gc=False):
    args: msgspec.Raw = msgspec.Raw(b"null")


_decode: Final = msgspec.json.Decoder(_Spec).decode
_arguments: Final = msgspec.json.Decoder(_Arguments).decode


class Figures(NamedTuple):
    """What follows from the run times of a workflow's jobs, known or expected."""

    at: int
    expected: Sequence[Estimate]
    chain: Chain
    progress: Progress


class Structure:
    """Collects the jobs of a workflow chunk by chunk."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.superseded = array("q")
        self.kinds = array("i")
        self.samples: list[tuple[int, bytes]] = []  # shape and spec of one job of each kind
        self._known: dict[tuple[int, str | None], int] = {}

    def add(self, rows: Iterable[tuple[JobFacts, bytes]]) -> None:
        """Adds jobs, ascending by id."""
        for facts, spec in rows:
            if facts.superseded_by:
                self.builder.supersede(facts.id, facts.superseded_by)
                self.superseded.append(facts.id)
                continue
            job = _decode(spec)
            name = job.name or f"{kinds_of(spec)[0]} #{facts.id}"
            stem = stem_of(name)
            needs = [*job.after, *job.after_any] if job.after_any else job.after
            self.builder.add(facts.id, name, stem, needs)
            self.kinds.append(self._kind(facts.shape, stem, spec))

    def _kind(self, shape: int, stem: str, spec: bytes) -> int:
        key = (shape, stem if len(self._known) < MAX_KINDS else None)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.samples)
            self.samples.append((shape, spec))
        return known


def digest_of(spec: bytes) -> int:
    """Returns a number for a job's arguments; ignores ids of other jobs, which differ between
    runs.
    """
    arguments = bytes(_arguments(spec).args)
    return hash(_RESULT.sub(b"", arguments) if b"$result" in arguments else arguments)


class Loaded:
    """A workflow's graph as of `version`, its newest job, and its jobs' states as of `seq`."""

    def __init__(self, workflow: int, version: int, structure: Structure) -> None:
        self.workflow = workflow
        self.version = version
        self.graph: Graph = structure.builder.build()
        self.levels = Levels(self.graph)
        self.kinds = structure.kinds
        self.samples = structure.samples
        # digests of arguments; read when runs are compared
        self.digests: Sequence[int] | None = None
        self.superseded: Sequence[int] = structure.superseded
        jobs = len(self.graph)
        self.states = bytearray(jobs)
        self.started, self.finished = array("q", [0]) * jobs, array("q", [0]) * jobs
        self.created, self.workers = array("q", [0]) * jobs, array("q", [0]) * jobs
        self.attempts, self.unmet = array("i", [0]) * jobs, array("i", [0]) * jobs
        self.manual: set[int] = set()  # jobs that wait for an operator, by index
        self.seq = 0
        self.read_at = 0
        self.figures: Figures | None = None
        self.views: OrderedDict[tuple[tuple[str, ...], tuple[int, ...]], View] = OrderedDict()

    @property
    def weight(self) -> int:
        """Returns how much memory it takes, in jobs and dependencies."""
        return len(self.graph) + self.graph.edges + 1

    def apply(self, moments: Iterable[JobMoment]) -> None:
        """Updates the states of some jobs."""
        index = self.graph.index
        for moment in moments:
            number = index.get(moment.job)
            if number is None:
                continue
            self.states[number] = moment.state
            self.started[number] = moment.started_at or 0
            self.finished[number] = moment.finished_at or 0
            self.created[number] = moment.created_at
            self.workers[number] = moment.worker or 0
            self.attempts[number] = moment.attempt
            self.unmet[number] = moment.unmet
            if moment.manual == BY_OPERATOR:
                self.manual.add(number)
            else:
                self.manual.discard(number)

    def times(self) -> Times:
        """Returns a copy of when jobs started and ended, for a thread."""
        return Times(bytes(self.states), self.started[:], self.finished[:])

    def view(self, opened: Sequence[str], reveal: Sequence[int]) -> View:
        """Returns what is shown with these groups open."""
        key = (tuple(opened), tuple(reveal))
        found = self.views.get(key)
        if found is None:
            found = self.views[key] = self.levels.view(opened, reveal)
            while len(self.views) > VIEWS:
                self.views.popitem(last=False)
        return found

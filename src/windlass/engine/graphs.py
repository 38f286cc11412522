"""Graphs of workflows in memory: read in small steps, laid out in threads, kept for a while.

A kept graph reads only what has changed since. It decides nothing.
"""

import asyncio
import re
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec

from windlass.domain.graphs.critical import (
    Chain,
    Estimate,
    Progress,
    Times,
    estimates,
    longest_chain,
    progress,
)
from windlass.domain.graphs.graph import Graph, GraphBuilder
from windlass.domain.graphs.groups import stem_of
from windlass.domain.graphs.view import Levels, View, count_states
from windlass.domain.job.kinds import kinds_of
from windlass.domain.lifecycle.workflow_state import COUNTS
from windlass.domain.rows.records import BY_OPERATOR, JobFacts, WorkflowRow
from windlass.domain.rows.statistics import Summary
from windlass.domain.rows.views import JobMoment
from windlass.domain.values.errors import Conflict, existing
from windlass.engine.history.statistics import Kinds
from windlass.engine.transaction.catalog import Catalog
from windlass.ports.loop_time import SMALL, aside
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store

MAX_KINDS: Final = 2_000  # told apart by name; others by their shape
VIEWS: Final = 8  # sets of open groups that are cached
_RESULT: Final = re.compile(rb'"\$result":\s*\d+')
MAX_JOBS: Final = 200_000
MAX_EDGES: Final = 3_000_000
KEPT: Final = 4_000_000  # jobs and dependencies of all cached graphs
KEPT_GRAPHS: Final = 64
CHUNK: Final = 1_000  # jobs read at once
EVENTS: Final = 1_000  # events read at once
FIGURES_MS: Final = 5_000  # how old the figures of a large graph may be
REREAD_MS: Final = 5_000  # minimum interval between full reads of a large graph's states
T = TypeVar("T")


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


class Graphs:
    """The graphs of workflows, each read and laid out once until jobs are added to it."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._kept: OrderedDict[int, Loaded] = OrderedDict()
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._large = asyncio.Semaphore(1)  # one large graph is read at a time

    async def loaded(self, workflow: int) -> Loaded:
        """Returns a workflow's graph with current states."""
        turn = self._turns.setdefault(workflow, asyncio.Lock())
        async with turn:
            row, version = await self._store.read(lambda tx: _version(tx, workflow))
            found = self._kept.get(workflow)
            if found is None or found.version != version:
                jobs = sum(row.counts[1:])
                async with nullcontext() if jobs <= CHUNK else self._large:
                    found = await self._load(row, version)
                self._keep(found)
            else:
                self._kept.move_to_end(workflow)
                await self._refresh(found)
            return found

    async def view(self, loaded: Loaded, opened: Sequence[str], reveal: Sequence[int]) -> View:
        """Returns what is shown with these groups open."""
        return await aside(loaded.weight, lambda: loaded.view(opened, reveal))

    async def members(self, loaded: Loaded, group: str) -> Sequence[int] | None:
        """Returns the jobs of a group, by index; None for an unknown group."""
        return await aside(loaded.weight, lambda: loaded.levels.members(group))

    async def counts(self, loaded: Loaded, view: View) -> Sequence[dict[int, int]]:
        """Returns how many jobs of each box are in each state."""
        states = bytes(loaded.states)
        found = await aside(
            loaded.weight, lambda: count_states(view.shown_in, states, len(view.boxes))
        )
        return [dict(one) for one in found]

    async def figures(self, loaded: Loaded) -> Figures:
        """Returns the longest chain and the progress, a few seconds old for large graphs."""
        now, known = await self._store.read(lambda tx: self._known(tx, loaded))
        kept = loaded.figures
        if kept is not None and loaded.weight > SMALL and now - kept.at < FIGURES_MS:
            return kept
        times = loaded.times()

        def work() -> Figures:
            expected = estimates(times, loaded.kinds, known, now)
            chain = longest_chain(loaded.graph, expected)
            return Figures(now, expected, chain, progress(times, expected, chain))

        loaded.figures = await aside(loaded.weight, work)
        return loaded.figures

    async def known_figures(self, loaded: Loaded) -> Figures | None:
        """Returns the figures if they are ready; those of a large graph may come later."""
        return await self.figures(loaded) if loaded.weight <= SMALL else loaded.figures

    async def digests(self, loaded: Loaded) -> Sequence[int]:
        """Returns a number for each job's arguments, equal for equal arguments."""
        if loaded.digests is None:
            found = array("q")
            jobs = loaded.graph.jobs
            for first in range(0, len(jobs), CHUNK):
                some = jobs[first : first + CHUNK]
                specs = await self._store.read(partial(_specs, jobs=some))
                await aside(len(jobs), partial(found.extend, (digest_of(spec) for spec in specs)))
            loaded.digests = found
        return loaded.digests

    async def moments(self, jobs: Sequence[int]) -> list[JobMoment]:
        """Returns where these jobs stand, read in small steps."""
        found: list[JobMoment] = []
        for first in range(0, len(jobs), CHUNK):
            some = await self._store.read(partial(_moments, jobs=jobs[first : first + CHUNK]))
            await aside(len(jobs), partial(found.extend, some))
        return found

    async def _known(self, tx: ReadTx, loaded: Loaded) -> tuple[int, list[Summary | None]]:
        kinds = Kinds(tx, self._catalog)
        await kinds.learn(loaded.samples)
        return tx.now, [kinds.of(*sample) for sample in loaded.samples]

    def _keep(self, loaded: Loaded) -> None:
        self._kept.pop(loaded.workflow, None)
        self._kept[loaded.workflow] = loaded
        while len(self._kept) > 1 and (
            len(self._kept) > KEPT_GRAPHS or sum(one.weight for one in self._kept.values()) > KEPT
        ):
            self._kept.popitem(last=False)

    async def _load(self, row: WorkflowRow, version: int) -> Loaded:
        _check_size(row.id, sum(row.counts[1:]), 0)
        seq = await self._store.read(lambda tx: tx.log.newest())
        structure = Structure()
        after = jobs = 0
        while rows := await self._store.read(partial(_page, workflow=row.id, after=after)):
            await aside(jobs + len(rows), partial(structure.add, rows))
            after, jobs = rows[-1][0].id, jobs + len(rows)
            _check_size(row.id, jobs, structure.builder.edges)
        weight = jobs + structure.builder.edges
        loaded = await aside(weight, lambda: Loaded(row.id, version, structure))
        loaded.seq = seq
        await self._read_all(loaded)
        return loaded

    async def _read_all(self, loaded: Loaded) -> None:
        loaded.read_at, jobs = await self._store.read(_now), loaded.graph.jobs
        for first in range(0, len(jobs), CHUNK):
            await self._read_some(loaded, jobs[first : first + CHUNK])

    async def _read_some(self, loaded: Loaded, jobs: Sequence[int]) -> None:
        found = await self._store.read(partial(_moments, jobs=jobs))
        await aside(loaded.weight, partial(loaded.apply, found))

    async def _refresh(self, loaded: Loaded) -> None:
        """Reads the jobs that events name, or all of them if that is less work."""
        newest = await self._store.read(lambda tx: tx.log.newest())
        if newest != loaded.seq:
            if newest - loaded.seq > len(loaded.graph):
                await self._read_all(loaded)
            else:
                await self._read_changed(loaded)
            loaded.seq = newest
        await self._check(loaded)

    async def _read_changed(self, loaded: Loaded) -> None:
        index, after = loaded.graph.index, loaded.seq
        changed: set[int] = set()
        while jobs := await self._store.read(partial(_changed, after=after)):
            after = jobs.pop(0)
            await aside(loaded.weight, partial(changed.update, index.keys() & jobs))
        ids = sorted(changed)
        for first in range(0, len(ids), CHUNK):
            await self._read_some(loaded, ids[first : first + CHUNK])

    async def _check(self, loaded: Loaded) -> None:
        """Reads all states again if they do not add up to the workflow's counts.

        A store may show an event later than its successor, so one may be missed.
        """
        row, now = await self._store.read(lambda tx: _row_and_time(tx, loaded.workflow))
        counted = [0] * COUNTS
        for state in range(1, COUNTS):
            counted[state] = loaded.states.count(state)
        if tuple(counted[1:]) != row.counts[1:] and (
            loaded.weight <= SMALL or now - loaded.read_at > REREAD_MS
        ):
            await self._read_all(loaded)


async def _version(tx: ReadTx, workflow: int) -> tuple[WorkflowRow, int]:
    row = existing("workflow", workflow, (await tx.workflows.read([workflow])).get(workflow))
    return row, await tx.workflows.last_job(workflow)


async def _row_and_time(tx: ReadTx, workflow: int) -> tuple[WorkflowRow, int]:
    row, _ = await _version(tx, workflow)
    return row, tx.now


async def _now(tx: ReadTx) -> int:
    return tx.now


async def _page(tx: ReadTx, workflow: int, after: int) -> list[tuple[JobFacts, bytes]]:
    facts = await tx.workflows.jobs_of(workflow, after, CHUNK)
    specs = await tx.jobs.specs([one.id for one in facts])
    return [(one, specs[one.id]) for one in facts]


async def _specs(tx: ReadTx, jobs: Sequence[int]) -> list[bytes]:
    specs = await tx.jobs.specs(jobs)
    return [specs.get(job, b"{}") for job in jobs]


async def _moments(tx: ReadTx, jobs: Sequence[int]) -> list[JobMoment]:
    return await tx.views.moments(jobs)


async def _changed(tx: ReadTx, after: int) -> list[int]:
    """Returns the number of the last event read, and the jobs that the events are about."""
    events = await tx.log.read(after, EVENTS)
    return [events[-1].seq, *{event.job for event in events}] if events else []


def _check_size(workflow: int, jobs: int, edges: int) -> None:
    for found, most, what in ((jobs, MAX_JOBS, "jobs"), (edges, MAX_EDGES, "dependencies")):
        if found > most:
            message = f"workflow {workflow} has more than {most:,} {what}: its graph is too large"
            raise Conflict("graph_too_large", f"{message}. Its jobs can be listed and filtered")

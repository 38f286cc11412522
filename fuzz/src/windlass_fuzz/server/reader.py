"""Reads the state of commit fuzzing for the pages of a server.

Buckets may be slow, large or broken: each read happens in a thread and has a time limit; concurrent
callers share one read, and its result is reused for some seconds. Nothing is written, not even
copies of damaged files.
"""

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from windlass.domain.values.errors import NotFound, StoreUnavailable, TooManyRequests, WindlassError
from windlass.domain.values.quantities import format_moment
from windlass.ports.clock import Clock
from windlass_fuzz.buckets.layout import coverage_key
from windlass_fuzz.config.combinations import combination_names
from windlass_fuzz.config.solver_file import Solver, load_named
from windlass_fuzz.coverage import coverage_map
from windlass_fuzz.findings.report import branch_text, input_name, render
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.reach.html_store import HtmlStore
from windlass_fuzz.roles.status import PipelineStatus, UnhealthyCommit, read_status
from windlass_fuzz.server.messages import (
    FuzzAlarm,
    FuzzBranch,
    FuzzCommit,
    FuzzCoverage,
    FuzzCoverageFile,
    FuzzFinding,
    FuzzFindingLine,
    FuzzLostAlarm,
    FuzzOnBranch,
    FuzzReached,
    FuzzShare,
    FuzzSolver,
    FuzzStatistics,
    FuzzStatus,
    FuzzWork,
    message_of,
)
from windlass_fuzz.server.statistics import read_last_run, read_reached, read_statistics
from windlass_fuzz.state.open import open_pipeline
from windlass_fuzz.state.pipeline import Pipeline

T = TypeVar("T")
Read = Callable[[Pipeline], Awaitable[T]]

FRESH_MS: Final = 15_000
MAX_S: Final = 20.0  # time limit of one read
SHOWN: Final = 500  # entries of a list
MAX_AT_ONCE: Final = 8
FILES: Final = 200  # files of the coverage
MAX_INPUT: Final = 16 * 2**20
MAX_MAP: Final = 8 * 2**20  # compressed
STATES: Final = ("open", "flaky", "quarantined", "closed")  # reports of findings
BUCKET_VARIABLE: Final = "WINDLASS_FUZZ_BUCKET"


class FuzzInput(NamedTuple):
    """The input of a finding."""

    name: str
    data: bytes


class _Source(NamedTuple):
    """A solver and where its state is."""

    solver: Solver
    bucket: str


class _Reading(NamedTuple):
    """A read in progress, or its result."""

    at: int
    task: "asyncio.Task[Any]"


class BucketReader:
    """Reads the state of some solvers from their buckets.

    Raises `NotFound` for what does not exist, and `StoreUnavailable` for what cannot be read.
    """

    def __init__(self, files: Sequence[str], data: Path, clock: Clock) -> None:
        self._clock = clock
        self._sources: dict[str, _Source] = {}
        self._readings: dict[tuple[str, str], _Reading] = {}
        self._summaries: dict[str, FuzzSolver] = {}  # solvers as they were last read
        self._reading = 0  # threads
        for file in files:
            solver = load_named(file)
            named = os.environ.get(BUCKET_VARIABLE) or solver.bucket
            self._sources[solver.name] = _Source(solver, named or str(data / "fuzzing"))

    async def solvers(self, patience_s: float | None = None, /) -> list[FuzzSolver]:
        """Returns all solvers; one that cannot be read says why.

        For a solver that is not read within `patience_s`, it returns the last known state.
        """
        summaries = (self._summary(source, patience_s) for source in self._sources.values())
        return list(await asyncio.gather(*summaries))

    async def status(self, solver: str) -> FuzzStatus:
        """Returns the queue, the builds, the schedule and the findings of a solver."""
        source = self._source(solver)
        return await self._shared("status", source, partial(_read_status, solver=source.solver))

    async def finding(self, solver: str, key: str, /) -> FuzzFinding:
        """Returns one finding with its report."""
        return await self._read(self._source(solver), partial(_read_finding, key=key))

    async def input(self, solver: str, key: str, /) -> FuzzInput:
        """Returns the input of a finding, unless it is very large."""
        return await self._read(self._source(solver), partial(_read_input, key=key))

    async def coverage(self, solver: str) -> FuzzCoverage:
        """Returns how many functions and tests the coverage map has, by source file."""
        source = self._source(solver)
        return await self._shared("coverage", source, _read_coverage)

    def _source(self, solver: str) -> _Source:
        source = self._sources.get(solver)
        if source is None:
            raise NotFound("solver", solver)
        return source

    async def statistics(self, solver: str) -> FuzzStatistics:
        """Returns what fuzzing did over time."""
        return await self._shared("statistics", self._source(solver), read_statistics)

    async def reached(self, solver: str, commit: str, /) -> FuzzReached:
        """Returns what the fuzzing of a commit was the first to reach."""
        return await self._read(self._source(solver), partial(read_reached, commit=commit))

    async def report_page(self, solver: str, page: str, /) -> bytes:
        """Returns a page of the HTML coverage report."""
        source = self._source(solver)
        return await self._read(source, lambda pipeline: HtmlStore(pipeline).page(page))

    async def _summary(self, source: _Source, patience_s: float | None) -> FuzzSolver:
        solver = source.solver
        shown = FuzzSolver(
            name=solver.name, repository=solver.repository, branch=solver.branch,
            branches=list(solver.watched),
        )  # fmt: skip
        try:
            async with asyncio.timeout(patience_s):
                status = await self.status(solver.name)
        except TimeoutError:
            late = msgspec.structs.replace(shown, problem=f"{_where(source)} is slow to answer")
            return self._summaries.get(solver.name, late)
        except WindlassError as error:
            self._summaries.pop(solver.name, None)
            return msgspec.structs.replace(shown, problem=error.message)
        counts = status.counts
        found = msgspec.structs.replace(
            shown, queue=counts["queue"], scheduled=counts["schedule"], runs=counts["runs"],
            open_findings=counts["open"], unhealthy=counts["unhealthy"], counts=counts,
            last_run_at=status.last_run_at,
        )  # fmt: skip
        self._summaries[solver.name] = found
        return found

    async def _shared(self, what: str, source: _Source, read: Read[T]) -> T:
        """Reads once for all callers within some seconds; a failure is not kept."""
        key, now = (what, source.solver.name), self._clock.now_ms()
        known = self._readings.get(key)
        failed = known is not None and known.task.done() and known.task.exception() is not None
        if known is None or failed or not 0 <= now - known.at < FRESH_MS:
            reading = asyncio.ensure_future(self._read(source, read))
            known = self._readings[key] = _Reading(now, reading)
        # A caller that leaves does not cancel the read of the others.
        found: T = await asyncio.shield(known.task)
        return found

    async def _read(self, source: _Source, read: Read[T]) -> T:
        """Reads in a thread; a read that never ends keeps occupying one of the few threads."""
        if self._reading >= MAX_AT_ONCE:
            raise TooManyRequests(1_000, "too many concurrent reads of buckets")
        self._reading += 1
        thread = asyncio.ensure_future(asyncio.to_thread(_in_thread, source, read))
        thread.add_done_callback(self._done)
        try:
            async with asyncio.timeout(MAX_S):
                return await asyncio.shield(thread)
        except TimeoutError:
            message = f"{_where(source)} did not answer within {MAX_S:g} s"
            raise StoreUnavailable(message, outcome_unknown=False) from None

    def _done(self, thread: "asyncio.Future[Any]") -> None:
        self._reading -= 1
        if not thread.cancelled():
            thread.exception()  # Everyone who still waits already has it.


def _in_thread(source: _Source, read: Read[T]) -> T:
    """Reads in a loop of its own; an error says what could not be read."""
    try:
        return asyncio.run(_open(source, read))
    except (NotFound, StoreUnavailable):
        raise
    except (WindlassError, OSError) as error:
        message = f"cannot read {_where(source)}: {error}"
        raise StoreUnavailable(message, outcome_unknown=False) from error


async def _open(source: _Source, read: Read[T]) -> T:
    pipeline = await open_pipeline(
        source.bucket, source.solver.name, dry_run=True, reading=True,
        matrix=combination_names(source.solver),
    )  # fmt: skip
    try:
        async with asyncio.timeout(MAX_S):
            return await read(pipeline)
    finally:
        await pipeline.bucket.close()


def _where(source: _Source) -> str:
    return f"the state of {source.solver.name} in {source.bucket}"


async def _read_finding(pipeline: Pipeline, key: str) -> FuzzFinding:
    store = FindingStore(pipeline)
    found = await store.get(key)
    branches = [
        FuzzOnBranch(
            name=one.name, state=one.state if one.watched else "unwatched", text=branch_text(one)
        )
        for one in found.branches
    ]
    return message_of(
        FuzzFinding, found, found_at=format_moment(found.found_at_ms), branches=branches,
        report=render(found, pipeline.solver, store.location(found)), input_name=input_name(found),
    )  # fmt: skip


async def _read_input(pipeline: Pipeline, key: str) -> FuzzInput:
    store = FindingStore(pipeline)
    found = await store.get(key)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "input")
        if not await store.fetch_input(found, path):
            raise NotFound("input of finding", key)
        return FuzzInput(input_name(found), _content(path))


async def _read_status(pipeline: Pipeline, solver: Solver) -> FuzzStatus:
    found = _show(await read_status(pipeline, solver), pipeline.now_ms())
    return msgspec.structs.replace(found, last_run_at=await read_last_run(pipeline))


async def _read_coverage(pipeline: Pipeline) -> FuzzCoverage:
    key = coverage_key(pipeline.solver)
    listed = [one async for one in pipeline.bucket.list(key.rpartition("/")[0]) if one.key == key]
    stored = await pipeline.bucket.get(key) if listed and listed[0].size <= MAX_MAP else None
    if not listed:
        return FuzzCoverage(
            commit=None, mapped_at=None, functions=0, tests=0, files=[], file_count=0
        )
    if stored is None:
        message = f"the coverage map has {listed[0].size} bytes: too many to show"
        raise StoreUnavailable(message, outcome_unknown=False)
    return _count(stored.body, format_moment(listed[0].modified_ms))


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_INPUT + 1)
    if len(data) > MAX_INPUT:
        message = f"the input has more than {MAX_INPUT} bytes: fetch it from the bucket"
        raise StoreUnavailable(message, outcome_unknown=False)
    return data


def _count(body: bytes, mapped_at: str) -> FuzzCoverage:
    """Counts the contents of a coverage map."""
    found = coverage_map.decode(body)
    functions: Counter[str] = Counter()
    tests: dict[str, set[str]] = {}
    for function, reached in found.functions.items():
        functions[function.path] += 1
        tests.setdefault(function.path, set()).update(reached)
    files = [
        FuzzCoverageFile(path=path, functions=count, tests=len(tests[path]))
        for path, count in functions.most_common(FILES)
    ]
    return FuzzCoverage(
        commit=found.commit,
        mapped_at=mapped_at,
        functions=len(found.functions),
        tests=len(found.tests),
        files=files,
        file_count=len(functions),
    )


def _alarm_text(one: UnhealthyCommit) -> str:
    return f"{one.combination}: {one.why}" if one.combination else one.why


def _show(found: PipelineStatus, now: int) -> FuzzStatus:
    lists = ("queue", "built", "failed", "schedule", "findings")
    counts = {name: len(getattr(found, name)) for name in lists}
    states = Counter(one.state for one in found.findings)
    counts |= {state: states[state] for state in STATES}
    counts["unhealthy"] = sum(one.commit not in found.failed for one in found.unhealthy)
    counts["untriaged"] = found.untriaged
    counts["runs"] = sum(one.fuzz_count for one in found.schedule)
    ordered = sorted(found.findings, key=lambda one: one.state != "open")
    return message_of(
        FuzzStatus, found, read_at=format_moment(now), counts=counts,
        queue=list(found.queue[:SHOWN]), built=list(found.built[:SHOWN]),
        failed=list(found.failed[:SHOWN]), unreadable=found.unreadable[:SHOWN],
        schedule=[
            FuzzCommit(commit=one.hash, fuzz_count=one.fuzz_count, branches=list(one.branches))
            for one in found.schedule[:SHOWN]
        ],
        at_work=[message_of(FuzzWork, one) for one in found.at_work[:SHOWN]],
        findings=[message_of(FuzzFindingLine, one) for one in ordered[:SHOWN]],
        branches=[message_of(FuzzBranch, one) for one in found.branches[:SHOWN]],
        shares=[
            message_of(FuzzShare, one, seconds=one.ms / 1000)
            for one in (() if found.next_run is None else found.next_run.shares)
        ],
        unhealthy=[
            message_of(FuzzAlarm, one, why=_alarm_text(one)) for one in found.unhealthy[:SHOWN]
        ],
        lost_alarms=[message_of(FuzzLostAlarm, one) for one in found.lost_alarms[:SHOWN]],
    )  # fmt: skip

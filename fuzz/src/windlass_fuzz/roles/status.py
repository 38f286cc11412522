"""Reads the whole state of a solver's pipeline."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from windlass.domain.values.quantities import format_moment
from windlass_fuzz.alarms.outbox import outbox_file
from windlass_fuzz.buckets.layout import coverage_key
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.findings.report import blamed
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.findings.untriaged import count_untriaged
from windlass_fuzz.reach.html_store import HtmlStore, ReportInfo
from windlass_fuzz.roles.combinations.next_shares import NextRun, next_run
from windlass_fuzz.state.documents import BranchProgress, Lease, Schedule
from windlass_fuzz.state.leases import is_live
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.rules import schedule_of


class ScheduledCommit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of the schedule, with its branches if the solver has several."""

    hash: str
    fuzz_count: int
    branches: tuple[str, ...] = ()


class BranchSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One of several branches; only a `watched` one is checked for commits."""

    name: str
    state: Literal["watched", "left out", "gone"]
    last_checked_commit: str | None
    checked_at: str | None
    scheduled: int
    waiting: int
    gone_since: str | None = None


class ActiveLease(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that someone is working on."""

    commit: str
    work: str
    holder: str
    until: str
    tries: int


class FindingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One finding in short; `branches` has its state on each of several watched branches."""

    key: str
    title: str
    state: str
    introduced_by: str | None
    kind: str = "crash"
    since: str = ""
    branches: dict[str, str] = {}


class UnhealthyCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit, or one combination of it, with an alarm about its build or its last runs."""

    commit: str
    runs: int
    why: str
    at: str
    combination: str = ""


class LostAlarm(msgspec.Struct, frozen=True, kw_only=True):
    """An alarm that did not arrive; without `next_at` it is no longer repeated."""

    commit: str
    place: str
    tries: int
    why: str
    next_at: str | None


class PipelineStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one solver; `unreadable` lists errors about findings that cannot be read.

    `next_run` is what the next run gives to each combination of a matrix. `branches` is empty for a
    solver with one branch.
    """

    solver: str
    bucket: str
    last_checked_commit: str | None
    checked_at: str | None
    queue: tuple[str, ...]
    built: tuple[str, ...]
    failed: tuple[str, ...]
    schedule: list[ScheduledCommit]
    at_work: list[ActiveLease]
    findings: list[FindingSummary]
    unreadable: list[str]
    coverage_mapped_at: str | None
    coverage_bytes: int
    coverage_report: ReportInfo | None = None
    unhealthy: list[UnhealthyCommit] = []
    lost_alarms: list[LostAlarm] = []
    untriaged: int = 0
    next_run: NextRun | None = None
    branches: list[BranchSummary] = []


async def read_status(pipeline: Pipeline, solver: Solver | None = None) -> PipelineStatus:
    """Reads everything once; with the solver file, also the next run of its matrix."""
    state = await pipeline.state.read()
    queue = await pipeline.queue.read()
    schedule = await pipeline.schedule.read()
    leases = await pipeline.leases.read()
    key = coverage_key(pipeline.solver)
    folder = key.rpartition("/")[0]
    unreadable: list[str] = []
    health = await pipeline.health.read()
    known = {*queue.queue, *queue.built, *queue.failed, *(entry.hash for entry in schedule)}
    mapped = [item async for item in pipeline.bucket.list(folder) if item.key == key]
    return PipelineStatus(
        solver=pipeline.solver,
        bucket=pipeline.bucket.name,
        last_checked_commit=state.last_checked_commit,
        checked_at=format_moment(state.checked_at_ms) if state.checked_at_ms else None,
        queue=queue.queue,
        built=queue.built,
        failed=queue.failed,
        schedule=[
            ScheduledCommit(hash=e.hash, fuzz_count=e.fuzz_count, branches=e.branches)
            for e in schedule
        ],
        at_work=[
            *_at_work("build", leases.build, pipeline.now_ms()),
            *_at_work("fuzz", leases.fuzz, pipeline.now_ms()),
        ],
        findings=[
            FindingSummary(
                key=f.key,
                title=f.title,
                state=f.state,
                introduced_by=None if f.last_good is None else f.introduced_by,
                kind=f.kind,
                since=blamed(f),
                branches={one.name: one.state for one in f.branches if one.watched},
            )
            async for f in FindingStore(pipeline).all(unreadable.append)
        ],
        unreadable=unreadable,
        coverage_mapped_at=format_moment(mapped[0].modified_ms) if mapped else None,
        coverage_bytes=mapped[0].size if mapped else 0,
        coverage_report=await HtmlStore(pipeline).info(),
        unhealthy=[
            UnhealthyCommit(commit=c, runs=bad.runs, why=bad.why, at=format_moment(bad.at_ms))
            for c, bad in health.commits.items()
            if c in known
        ]
        + [
            UnhealthyCommit(
                commit=key.partition("/")[0],
                combination=key.partition("/")[2],
                runs=bad.runs,
                why=bad.why,
                at=format_moment(bad.at_ms),
            )
            for key, bad in health.combinations.items()
            if key.partition("/")[0] in known
        ],
        lost_alarms=await _lost_alarms(pipeline),
        untriaged=await count_untriaged(pipeline),
        next_run=None if solver is None else await next_run(solver, pipeline),
        branches=[_branch(name, one, schedule) for name, one in state.branches.items()],
    )


async def _lost_alarms(pipeline: Pipeline) -> list[LostAlarm]:
    waiting = (await outbox_file(pipeline).read()).undelivered
    return [
        LostAlarm(
            commit=one.alarm.commit, place=one.place, tries=one.tries, why=one.why,
            next_at=None if one.next_at_ms is None else format_moment(one.next_at_ms),
        )
        for one in waiting
    ]  # fmt: skip


def _branch(name: str, one: BranchProgress, schedule: Schedule) -> BranchSummary:
    return BranchSummary(
        name=name, state="left out" if one.left_out else "gone" if one.gone_at_ms else "watched",
        last_checked_commit=one.last_checked_commit,
        checked_at=format_moment(one.checked_at_ms) if one.checked_at_ms else None,
        scheduled=len(schedule_of(schedule, name)), waiting=len(one.waiting),
        gone_since=format_moment(one.gone_at_ms) if one.gone_at_ms else None,
    )  # fmt: skip


def _at_work(work: str, leases: Mapping[str, Lease], now_ms: int) -> list[ActiveLease]:
    return [
        ActiveLease(
            commit=commit, work=work, holder=lease.holder, until=format_moment(lease.until_ms),
            tries=lease.tries,
        )
        for commit, lease in leases.items()
        if is_live(lease, now_ms)
    ]  # fmt: skip

"""Everything that a store holds, in the same order on every store."""

from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from windlass.domain.access.tokens import Code, Token
from windlass.domain.matching.workers import PastMetadata
from windlass.domain.pools.pools import CostRow, PoolRow, PoolWorkerRow
from windlass.domain.rows.events import BaselineRow
from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, NameRow, Progress, UploadRow
from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import (
    Attempt,
    Cascade,
    Due,
    InboxRow,
    JobAlias,
    JobRecord,
    KeyRow,
    Lease,
    LimitRow,
    QueueRow,
    RateRow,
    Reservation,
    ShapeRow,
    Ticket,
    Wait,
    Worker,
    WorkflowAbout,
    WorkflowRow,
)
from windlass.domain.rows.series import SeriesRow
from windlass.domain.rows.statistics import StatisticsRow, Usage
from windlass.domain.rows.steps import SignalRow, StepRow
from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow
from windlass.ports.loop_time import aside
from windlass.store.sql.access import tokens_of
from windlass.store.sql.inbox import inbox_of
from windlass.store.sql.jobs import as_key, records_of
from windlass.store.sql.places import due_of, waits_of
from windlass.store.sql.session import Session, maker
from windlass.store.sql.workflows import workflows_of

R = TypeVar("R", bound=tuple[Any, ...])


class Snapshot(NamedTuple):
    """Everything a store holds, in one order, for `verify` and for comparing stores."""

    jobs: tuple[JobRecord, ...]
    waits: tuple[Wait, ...]
    due: tuple[Due, ...]
    parked: tuple[Ticket, ...]
    ready: tuple[Ticket, ...]
    leases: tuple[Lease, ...]
    attempts: tuple[Attempt, ...]
    dependents: tuple[tuple[int, tuple[int, ...]], ...]  # job, all its edges
    workers: tuple[Worker, ...]
    limits: tuple[LimitRow, ...]
    keys: tuple[KeyRow, ...]
    workflows: tuple[WorkflowRow, ...]
    cascades: tuple[Cascade, ...]
    shapes: tuple[ShapeRow, ...]
    queues: tuple[QueueRow, ...]
    meta: tuple[tuple[str, int], ...]
    counters: tuple[tuple[str, int], ...]
    tokens: tuple[Token, ...] = ()
    codes: tuple[Code, ...] = ()
    logs: tuple[LogRow, ...] = ()
    artifacts: tuple[ArtifactRow, ...] = ()
    names: tuple[NameRow, ...] = ()
    uploads: tuple[UploadRow, ...] = ()
    progress: tuple[Progress, ...] = ()
    dynamic: tuple[Dynamic, ...] = ()
    steps: tuple[StepRow, ...] = ()
    signals: tuple[SignalRow, ...] = ()
    baseline: tuple[BaselineRow, ...] = ()
    templates: tuple[TemplateRow, ...] = ()
    schedules: tuple[ScheduleRow, ...] = ()
    schedule_runs: tuple[RunRow, ...] = ()
    reactions: tuple[ReactionRow, ...] = ()
    workflow_about: tuple[WorkflowAbout, ...] = ()
    workflow_keys: tuple[tuple[str, str, int], ...] = ()  # namespace, key, workflow
    statistics: tuple[StatisticsRow, ...] = ()
    series: tuple[SeriesRow, ...] = ()
    usage: tuple[Usage, ...] = ()
    deadlines: tuple[tuple[int, int], ...] = ()  # at, job
    past_metadata: tuple[PastMetadata, ...] = ()
    past_workers: tuple[tuple[int, str], ...] = ()  # id and name of removed ones
    rates: tuple[RateRow, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    namespace_weights: tuple[tuple[str, int], ...] = ()
    pools: tuple[PoolRow, ...] = ()
    pool_workers: tuple[PoolWorkerRow, ...] = ()
    pool_costs: tuple[CostRow, ...] = ()
    inbox: tuple[InboxRow, ...] = ()
    job_aliases: tuple[JobAlias, ...] = ()
    gaps: tuple[Gap, ...] = ()


async def take_snapshot(session: Session, filled: Container[str] | None = None) -> Snapshot:
    """Reads every table; `session` has one snapshot of the database.

    `filled` limits it to these statements, if the other tables are empty.
    """

    async def fetch(name: str, *args: object) -> list[Any]:
        return await session.fetch(name, *args) if filled is None or name in filled else []

    async def rows(kind: type[R], name: str, *args: object) -> tuple[R, ...]:
        return await _made(partial(map, maker(kind)), await fetch(name, *args))

    async def tuples(name: str) -> tuple[Any, ...]:
        return await _made(partial(map, tuple), await fetch(name))

    return Snapshot(
        jobs=await _made(records_of, await fetch("all_jobs")),
        waits=await _made(waits_of, await fetch("all_waits")),
        due=await _made(due_of, await fetch("all_due")),
        parked=await rows(Ticket, "all_parked"),
        ready=await rows(Ticket, "all_ready"),
        leases=await rows(Lease, "all_leases"),
        attempts=await rows(Attempt, "all_attempts"),
        dependents=await _made(partial(_dependents, session), await fetch("all_dependents")),
        workers=await rows(Worker, "all_workers"),
        limits=await rows(LimitRow, "all_limits"),
        keys=await _made(partial(map, as_key), await fetch("all_keys")),
        workflows=tuple(workflows_of(session, await fetch("all_workflows"))),
        cascades=await rows(Cascade, "all_cascades"),
        shapes=await rows(ShapeRow, "shapes_after", 0),
        queues=await rows(QueueRow, "queues"),
        meta=await tuples("meta"),
        counters=tuple(pair for pair in await tuples("counters") if pair[1]),
        tokens=tuple(tokens_of(session, await fetch("all_tokens"))),
        codes=await rows(Code, "all_codes"),
        logs=await rows(LogRow, "all_logs"),
        artifacts=await rows(ArtifactRow, "all_artifacts"),
        names=await rows(NameRow, "all_names"),
        uploads=await rows(UploadRow, "all_uploads"),
        progress=await rows(Progress, "all_progress"),
        dynamic=await rows(Dynamic, "all_dynamic"),
        steps=await rows(StepRow, "all_steps"),
        signals=await rows(SignalRow, "all_signals"),
        baseline=await rows(BaselineRow, "all_baseline"),
        templates=await rows(TemplateRow, "all_templates"),
        schedules=await rows(ScheduleRow, "all_schedules"),
        schedule_runs=await rows(RunRow, "all_schedule_runs"),
        reactions=await rows(ReactionRow, "all_reactions"),
        workflow_about=await rows(WorkflowAbout, "all_workflow_about"),
        workflow_keys=await tuples("all_workflow_keys"),
        rates=await rows(RateRow, "all_rates"),
        reservations=await rows(Reservation, "reservations"),
        namespace_weights=await tuples("namespace_weights"),
        statistics=await rows(StatisticsRow, "all_statistics"),
        series=await rows(SeriesRow, "all_series"),
        usage=await rows(Usage, "all_usage"),
        deadlines=await tuples("all_deadlines"),
        past_workers=await tuples("all_past_workers"),
        past_metadata=await rows(PastMetadata, "past_metadata", 0),
        pools=await rows(PoolRow, "all_pools"),
        pool_workers=await rows(PoolWorkerRow, "all_pool_workers"),
        pool_costs=await rows(CostRow, "all_pool_costs"),
        inbox=tuple(inbox_of(session, await fetch("all_inbox"))),
        job_aliases=await rows(JobAlias, "all_job_aliases"),
        gaps=await rows(Gap, "gaps"),
    )


async def _made(make: Callable[[list[Any]], Iterable[R]], found: list[Any]) -> tuple[R, ...]:
    """Makes records of rows, and frees the rows: both would hold the event loop."""

    def work() -> tuple[R, ...]:
        rows = tuple(make(found))
        found.clear()
        return rows

    return await aside(len(found), work)


def _dependents(session: Session, rows: list[Any]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Returns all dependents of each job, from its consecutive chunks."""
    edges: dict[int, list[int]] = {}
    for job, chunk in rows:
        edges.setdefault(job, []).extend(session.unpack_edges(chunk))
    return tuple((job, tuple(its)) for job, its in edges.items())

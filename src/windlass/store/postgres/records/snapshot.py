"""Everything the store holds, in the one order that all stores show it in."""

from collections.abc import Sequence

from windlass.domain.access.tokens import Code
from windlass.domain.matching.workers import PastMetadata
from windlass.domain.pools.pools import CostRow, PoolRow, PoolWorkerRow
from windlass.domain.rows.events import BaselineRow
from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, NameRow, Progress, UploadRow
from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import (
    Attempt,
    Cascade,
    JobAlias,
    JobFacts,
    JobRecord,
    LimitRow,
    QueueRow,
    RateRow,
    Reservation,
    ShapeRow,
    Worker,
    WorkflowAbout,
)
from windlass.domain.rows.series import SeriesRow
from windlass.domain.rows.statistics import StatisticsRow, Usage
from windlass.domain.rows.steps import SignalRow, StepRow
from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow
from windlass.ports.store import Snapshot
from windlass.store.postgres.core.leases import leases_of
from windlass.store.postgres.core.places import due_of, tickets_of, waits_of
from windlass.store.postgres.core.workflows import workflows_of
from windlass.store.postgres.session import Rows, Session
from windlass.store.spans import as_key
from windlass.store.sql.access import tokens_of
from windlass.store.sql.inbox import inbox_of

FACTS = len(JobFacts._fields)


async def take_snapshot(session: Session) -> Snapshot:
    """Reads every table that has rows; `session` has one snapshot of the database."""
    filled = {row[0] for row in await session.fetch("filled")}

    async def fetch(name: str, *args: object) -> Rows:
        return await session.fetch(name, *args) if name in filled else []

    return Snapshot(
        jobs=tuple(
            JobRecord(JobFacts._make(r[:FACTS]), *r[FACTS:]) for r in await fetch("all_jobs")
        ),
        waits=tuple(waits_of(await fetch("all_waits"))),
        due=tuple(due_of(await fetch("all_due"))),
        parked=tuple(tickets_of(await fetch("all_parked"))),
        ready=tuple(tickets_of(await fetch("all_ready"))),
        leases=tuple(leases_of(await fetch("all_leases"))),
        attempts=tuple(map(Attempt._make, await fetch("all_attempts"))),
        dependents=_dependents(await fetch("all_dependents")),
        workers=tuple(map(Worker._make, await fetch("all_workers"))),
        limits=tuple(map(LimitRow._make, await fetch("all_limits"))),
        keys=tuple(map(as_key, await fetch("all_keys"))),
        workflows=tuple(workflows_of(await fetch("all_workflows"))),
        cascades=tuple(map(Cascade._make, await fetch("all_cascades"))),
        shapes=tuple(map(ShapeRow._make, await fetch("shapes_after", 0))),
        queues=tuple(map(QueueRow._make, await fetch("queues"))),
        meta=tuple(_pairs(await fetch("meta"))),
        counters=tuple(pair for pair in _pairs(await fetch("counters")) if pair[1]),
        tokens=tuple(tokens_of(session, await fetch("all_tokens"))),
        codes=tuple(map(Code._make, await fetch("all_codes"))),
        logs=tuple(map(LogRow._make, await fetch("all_logs"))),
        artifacts=tuple(map(ArtifactRow._make, await fetch("all_artifacts"))),
        names=tuple(map(NameRow._make, await fetch("names", None))),
        uploads=tuple(map(UploadRow._make, await fetch("uploads", None))),
        progress=tuple(map(Progress._make, await fetch("all_progress"))),
        dynamic=tuple(map(Dynamic._make, await fetch("all_dynamic"))),
        steps=tuple(map(StepRow._make, await fetch("all_steps"))),
        signals=tuple(map(SignalRow._make, await fetch("all_signals"))),
        baseline=tuple(map(BaselineRow._make, await fetch("all_baseline"))),
        templates=tuple(map(TemplateRow._make, await fetch("all_templates"))),
        schedules=tuple(map(ScheduleRow._make, await fetch("all_schedules"))),
        schedule_runs=tuple(map(RunRow._make, await fetch("all_schedule_runs"))),
        reactions=tuple(map(ReactionRow._make, await fetch("all_reactions"))),
        workflow_about=tuple(map(WorkflowAbout._make, await fetch("all_workflow_about"))),
        workflow_keys=tuple((r[0], r[1], r[2]) for r in await fetch("all_workflow_keys")),
        rates=tuple(map(RateRow._make, await fetch("all_rates"))),
        reservations=tuple(map(Reservation._make, await fetch("reservations"))),
        namespace_weights=tuple(_pairs(await fetch("namespace_weights"))),
        statistics=tuple(map(StatisticsRow._make, await fetch("all_statistics"))),
        series=tuple(map(SeriesRow._make, await fetch("all_series"))),
        usage=tuple(map(Usage._make, await fetch("all_usage"))),
        deadlines=tuple((at, job) for at, job in await fetch("all_deadlines")),
        past_workers=tuple((r[0], r[1]) for r in await fetch("past_workers")),
        past_metadata=tuple(map(PastMetadata._make, await fetch("past_metadata", 0))),
        pools=tuple(map(PoolRow._make, await fetch("all_pools_by_id"))),
        pool_workers=tuple(map(PoolWorkerRow._make, await fetch("all_pool_workers"))),
        pool_costs=tuple(map(CostRow._make, await fetch("all_pool_costs"))),
        inbox=tuple(inbox_of(session, await fetch("all_inbox"))),
        job_aliases=tuple(map(JobAlias._make, await fetch("all_job_aliases"))),
        gaps=tuple(map(Gap._make, await fetch("gaps"))),
    )


def _pairs(rows: Rows) -> Sequence[tuple[str, int]]:
    return [(name, value) for name, value in rows]


def _dependents(rows: Rows) -> tuple[tuple[int, tuple[int, ...]], ...]:
    edges: dict[int, list[int]] = {}
    for job, _, chunk in rows:
        edges.setdefault(job, []).extend(chunk)
    return tuple((job, tuple(its)) for job, its in edges.items())

"""Everything a store holds but the events and the audit log, in one order."""

from typing import NamedTuple

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

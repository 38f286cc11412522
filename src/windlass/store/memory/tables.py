"""All tables of the memory store, shared by every engine attached to it."""

from typing import Final

from windlass.domain.access.audit import AuditRow
from windlass.domain.access.tokens import Code, Token
from windlass.domain.matching.workers import PastMetadata
from windlass.domain.pools.pools import CostRow, PoolRow, PoolWorkerRow
from windlass.domain.rows.events import BaselineRow, Event
from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, NameRow, Progress, UploadRow
from windlass.domain.rows.gaps import SHAPE_MARGIN, Gap, first_after
from windlass.domain.rows.records import (
    Attempt,
    Cascade,
    Dependents,
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
from windlass.domain.rows.series import SeriesKey, SeriesRow
from windlass.domain.rows.statistics import StatisticsRow, Usage
from windlass.domain.rows.steps import SignalRow, StepRow
from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow
from windlass.store.memory.table import Journal, Order, SortedTable, Table

SHAPE: Final = "shape"
OTHERS: Final = ""  # stands for sequences that have given nothing yet


class Tables:
    """One attribute for each table of docs/ARCHITECTURE.md, and the journal over them."""

    def __init__(self) -> None:
        journal = Journal()
        self.journal = journal
        self.jobs: Table[int, JobRecord] = Table(journal)
        self.attempts: SortedTable[Order, Attempt] = SortedTable(
            journal, lambda row: (row.job, row.number)
        )
        self.dependents: SortedTable[Order, Dependents] = SortedTable(
            journal, lambda row: (row.job, row.chunk)
        )
        self.keys: Table[tuple[str, str], KeyRow] = Table(journal)

        self.waits: Table[int, Wait] = Table(journal)
        self.due: SortedTable[int, Due] = SortedTable(journal, lambda row: (row.at, row.job))
        self.parked: SortedTable[Order, Ticket] = SortedTable(
            journal, lambda row: (row.known_limit, row.shape, row.rank, row.job)
        )
        self.ready: SortedTable[Order, Ticket] = SortedTable(
            journal, lambda row: (row.shape, row.rank, row.job)
        )
        self.ready_counts: Table[tuple[int, int], int] = Table(journal)  # (limit, shape)
        self.leases: SortedTable[int, Lease] = SortedTable(
            journal, lambda row: (row.worker, row.lease)
        )

        self.workers: Table[int, Worker] = Table(journal)
        self.workflows: Table[int, WorkflowRow] = Table(journal)
        # Which jobs belong to a workflow, as (workflow, job).
        self.grouped: SortedTable[Order, Order] = SortedTable(journal, lambda row: row)
        self.workflow_about: Table[int, WorkflowAbout] = Table(journal)
        self.workflow_keys: Table[tuple[str, str], tuple[str, str, int]] = Table(journal)
        self.cascades: SortedTable[int, Cascade] = SortedTable(journal, lambda row: (row.id,))
        self.limits: Table[int, LimitRow] = Table(journal)
        self.limit_ids: Table[tuple[str, str], int] = Table(journal)  # (namespace, key)

        self.shapes: SortedTable[int, ShapeRow] = SortedTable(journal, lambda row: (row.id,))
        self.shape_ids: Table[str, int] = Table(journal)  # digest
        self.queues: Table[str, QueueRow] = Table(journal)
        self.meta: Table[str, tuple[str, int]] = Table(journal)
        self.events: SortedTable[int, Event] = SortedTable(journal, lambda row: (row.seq,))
        self.counters: Table[tuple[str, str], tuple[str, int]] = Table(journal)  # (server, name)
        self._last: Table[str, int] = Table(journal)
        self._names: set[str] = set()  # of the sequences that gave numbers
        self._add_files(journal)
        self._add_schedules(journal)
        self._add_placement(journal)
        self._add_statistics(journal)
        self._add_pools(journal)

    def _add_files(self, journal: Journal) -> None:
        self.tokens: Table[int, Token] = Table(journal)
        self.token_ids: Table[str, int] = Table(journal)  # digest
        self.audit: SortedTable[int, AuditRow] = SortedTable(journal, lambda row: (row.id,))
        self.codes: Table[str, Code] = Table(journal)
        self.inbox: SortedTable[int, InboxRow] = SortedTable(journal, lambda row: (row.id,))
        self.gaps: SortedTable[int, Gap] = SortedTable(journal, lambda row: (row.first,))
        self.job_aliases: SortedTable[int, JobAlias] = SortedTable(journal, lambda row: (row.job,))
        self.logs: SortedTable[Order, LogRow] = SortedTable(
            journal, lambda row: (row.job, row.attempt)
        )
        # Artifacts of one job, by attempt and name.
        self.artifacts: Table[int, dict[tuple[int, str], ArtifactRow]] = Table(journal)
        self.names: Table[tuple[str, str], NameRow] = Table(journal)
        self.uploads: Table[tuple[str, str], UploadRow] = Table(journal)  # (namespace, sha256)
        self.progress: Table[int, Progress] = Table(journal)
        self.dynamic: Table[int, Dynamic] = Table(journal)
        # Steps of one job, by key.
        self.steps: Table[int, dict[str, StepRow]] = Table(journal)
        self.signals: SortedTable[int, SignalRow] = SortedTable(journal, lambda row: (row.id,))
        self.baseline: SortedTable[Order, BaselineRow] = SortedTable(
            journal, lambda row: (row.kind, row.id)
        )

    def _add_schedules(self, journal: Journal) -> None:
        # By namespace, name and version.
        self.templates: Table[tuple[str, str, int], TemplateRow] = Table(journal)
        self.schedules: Table[int, ScheduleRow] = Table(journal)
        self.schedule_runs: SortedTable[int, RunRow] = SortedTable(journal, lambda row: (row.id,))
        self.reactions: SortedTable[int, ReactionRow] = SortedTable(journal, lambda row: (row.id,))

    def _add_statistics(self, journal: Journal) -> None:
        # By namespace, queue, kind and measure.
        self.statistics: Table[tuple[str, str, str, int], StatisticsRow] = Table(journal)
        self.series: Table[SeriesKey, SeriesRow] = Table(journal)
        self.usage: Table[int, Usage] = Table(journal)
        self.deadlines: SortedTable[tuple[int, int], tuple[int, int]] = SortedTable(
            journal, lambda row: row
        )
        # By worker and digest.
        self.past_workers: Table[int, tuple[int, str]] = Table(journal)
        self.past_metadata: Table[tuple[int, str], PastMetadata] = Table(journal)

    def _add_placement(self, journal: Journal) -> None:
        self.rates: Table[tuple[str, str], RateRow] = Table(journal)  # (namespace, key)
        self.reservations: Table[int, Reservation] = Table(journal)  # worker
        self.namespace_weights: Table[str, tuple[str, int]] = Table(journal)

    def _add_pools(self, journal: Journal) -> None:
        self.pools: Table[int, PoolRow] = Table(journal)
        self.pool_workers: SortedTable[int, PoolWorkerRow] = SortedTable(
            journal, lambda row: (row.id,)
        )
        # By pool, month, namespace and queue.
        self.pool_costs: Table[tuple[object, ...], CostRow] = Table(journal)

    def number(self, sequence: str, count: int = 1) -> range:
        """Returns the next `count` numbers of a sequence, each of which begins at 1."""
        first = self._given(sequence) + 1
        self._last.put(sequence, first + count - 1)
        return range(first, first + count)

    def jump(self, now_ms: int) -> int:
        """Lets all sequences go on after the number it returns."""
        names = {"job", "event", *self._names} - {SHAPE}
        first = first_after(max(map(self._given, names)), now_ms)
        for name in (*sorted(names), OTHERS):
            self._last.put(name, first)
        self._last.put(SHAPE, self._given(SHAPE) + SHAPE_MARGIN)
        return first

    def _given(self, sequence: str) -> int:
        others = 0 if sequence == SHAPE else self._last.get(OTHERS) or 0
        self._names.add(sequence)
        return self._last.get(sequence) or others

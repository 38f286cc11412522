"""A transaction: its roles and its time. Reading and writing transactions are two types.

Locks, where a database has them, are taken in one order: workers, jobs, places and leases, limits,
workflows, then the log; ascending by id within each. Each method of a role says which rows it
locks; the engine calls them in that order.
"""

from dataclasses import InitVar, dataclass, field

from windlass.store.sql.access import Access, AccessRead, Audit, AuditRead
from windlass.store.sql.catalog import Catalog, CatalogRead
from windlass.store.sql.files import Files, FilesRead
from windlass.store.sql.flow import Flow
from windlass.store.sql.inbox import Inbox, InboxRead
from windlass.store.sql.jobs import Jobs, JobsRead
from windlass.store.sql.leases import Leases, LeasesRead
from windlass.store.sql.log import Log, LogRead
from windlass.store.sql.placement import Limits, LimitsRead, Placement, PlacementRead
from windlass.store.sql.places import Places, PlacesRead
from windlass.store.sql.pools import Pools, PoolsRead
from windlass.store.sql.retention import Retention, RetentionRead
from windlass.store.sql.schedules import (
    Reactions,
    ReactionsRead,
    Schedules,
    SchedulesRead,
    Templates,
    TemplatesRead,
)
from windlass.store.sql.session import Session
from windlass.store.sql.statistics import (
    Deadlines,
    DeadlinesRead,
    Series,
    SeriesRead,
    Statistics,
    StatisticsRead,
)
from windlass.store.sql.steps import Steps, StepsRead
from windlass.store.sql.views import Views
from windlass.store.sql.workers import Workers, WorkersRead
from windlass.store.sql.workflows import Workflows, WorkflowsRead


@dataclass(slots=True, kw_only=True)
class ReadTx:
    """A transaction that only reads, on one consistent snapshot: nothing here writes or locks."""

    now: int
    """The store's time, the same throughout the transaction."""

    jobs: JobsRead
    places: PlacesRead
    leases: LeasesRead
    workers: WorkersRead
    workflows: WorkflowsRead
    limits: LimitsRead
    catalog: CatalogRead
    log: LogRead
    access: AccessRead
    audit: AuditRead
    files: FilesRead
    views: Views
    retention: RetentionRead
    templates: TemplatesRead
    schedules: SchedulesRead
    reactions: ReactionsRead
    placement: PlacementRead
    statistics: StatisticsRead
    series: SeriesRead
    deadlines: DeadlinesRead
    steps: StepsRead
    pools: PoolsRead
    inbox: InboxRead


@dataclass(slots=True, kw_only=True)
class WriteTx(ReadTx):
    """A transaction that may write, and lock rows until it ends.

    Roles that are the same on every database are made here, over its `session`.
    """

    session: InitVar[Session]

    jobs: Jobs
    places: Places
    leases: Leases
    workers: Workers = field(init=False)
    workflows: Workflows
    limits: Limits
    catalog: Catalog
    log: Log
    flow: Flow
    access: Access = field(init=False)
    audit: Audit = field(init=False)
    files: Files = field(init=False)
    retention: Retention
    templates: Templates = field(init=False)
    schedules: Schedules = field(init=False)
    reactions: Reactions = field(init=False)
    placement: Placement
    statistics: Statistics = field(init=False)
    series: Series = field(init=False)
    deadlines: Deadlines = field(init=False)
    steps: Steps = field(init=False)
    pools: Pools = field(init=False)
    inbox: Inbox = field(init=False)

    def __post_init__(self, session: Session) -> None:
        self.workers = Workers(session)
        self.access = Access(session)
        self.audit = Audit(session)
        self.files = Files(session)
        self.templates = Templates(session)
        self.schedules = Schedules(session)
        self.reactions = Reactions(session)
        self.statistics = Statistics(session)
        self.series = Series(session)
        self.deadlines = Deadlines(session)
        self.steps = Steps(session)
        self.pools = Pools(session)
        self.inbox = Inbox(session)

"""A transaction: its roles and its time. Reading and writing transactions are two types.

A role has one class, and the database refuses a write in a transaction that only reads.

Locks, where a database has them, are taken in one order: workers, jobs, places and leases, limits,
workflows, then the log; ascending by id within each. Each method of a role says which rows it
locks; the engine calls them in that order.
"""

from dataclasses import InitVar, dataclass, field

from windlass.store.sql.access import Access, Audit
from windlass.store.sql.catalog import Catalog
from windlass.store.sql.files import Files
from windlass.store.sql.flow import Flow
from windlass.store.sql.inbox import Inbox
from windlass.store.sql.jobs import Jobs
from windlass.store.sql.leases import Leases
from windlass.store.sql.log import Log
from windlass.store.sql.placement import Limits, Placement
from windlass.store.sql.places import Places
from windlass.store.sql.pools import Pools
from windlass.store.sql.retention import Retention
from windlass.store.sql.schedules import Reactions, Schedules, Templates
from windlass.store.sql.session import Session
from windlass.store.sql.statistics import Deadlines, Series, Statistics
from windlass.store.sql.steps import Steps
from windlass.store.sql.views import Views
from windlass.store.sql.workers import Workers
from windlass.store.sql.workflows import Workflows


@dataclass(slots=True, kw_only=True)
class ReadTx:
    """A transaction that only reads, on one consistent snapshot: the database refuses writes.

    Roles that are the same on every database are made here, over its `session`.
    """

    session: InitVar[Session]

    now: int
    """The store's time, the same throughout the transaction."""

    jobs: Jobs
    places: Places
    leases: Leases
    workers: Workers = field(init=False)
    workflows: Workflows
    limits: Limits
    catalog: Catalog
    log: Log
    access: Access = field(init=False)
    audit: Audit = field(init=False)
    files: Files = field(init=False)
    views: Views
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


@dataclass(slots=True, kw_only=True)
class WriteTx(ReadTx):
    """A transaction that may write, and lock rows until it ends."""

    flow: Flow

"""One transaction: the roles over one connection, and the moment it takes place."""

from typing import NamedTuple

from windlass.store.sql.access import Access
from windlass.store.sql.audit import Audit
from windlass.store.sql.inbox import Inbox
from windlass.store.sql.pools import Pools
from windlass.store.sql.schedules import Reactions, Schedules, Templates
from windlass.store.sql.series import Series
from windlass.store.sql.statistics import Deadlines, Statistics
from windlass.store.sql.workers import Workers
from windlass.store.sqlite.core.flow import SqliteFlow
from windlass.store.sqlite.core.jobs import SqliteJobs
from windlass.store.sqlite.core.leases import SqliteLeases
from windlass.store.sqlite.core.limits import SqliteLimits
from windlass.store.sqlite.core.log import SqliteLog
from windlass.store.sqlite.core.places import SqlitePlaces
from windlass.store.sqlite.core.steps import SqliteSteps
from windlass.store.sqlite.core.workflows import SqliteWorkflows
from windlass.store.sqlite.records.files import SqliteFiles
from windlass.store.sqlite.records.retention import SqliteRetention
from windlass.store.sqlite.records.views import SqliteViews
from windlass.store.sqlite.roles import SqliteCatalog, SqlitePlacement
from windlass.store.sqlite.session import SqliteSession


class SqliteTx(NamedTuple):
    """`WriteTx`; the roles are made once for a connection, only `now` changes."""

    now: int
    jobs: SqliteJobs
    places: SqlitePlaces
    leases: SqliteLeases
    workers: Workers
    workflows: SqliteWorkflows
    limits: SqliteLimits
    catalog: SqliteCatalog
    log: SqliteLog
    flow: SqliteFlow
    access: Access
    audit: Audit
    files: SqliteFiles
    views: SqliteViews
    retention: SqliteRetention
    templates: Templates
    schedules: Schedules
    reactions: Reactions
    placement: SqlitePlacement
    statistics: Statistics
    series: Series
    deadlines: Deadlines
    steps: SqliteSteps
    pools: Pools
    inbox: Inbox


def roles_over(session: SqliteSession, server: str) -> SqliteTx:
    """Returns all roles over one connection."""
    connection, sequences = session.connection, session.sequences
    files = SqliteFiles(connection)
    places = SqlitePlaces(connection)
    return SqliteTx(
        now=0,
        jobs=SqliteJobs(connection, sequences),
        places=places,
        leases=SqliteLeases(connection, sequences, places),
        workers=Workers(session),
        workflows=SqliteWorkflows(connection, sequences),
        limits=SqliteLimits(connection, sequences),
        catalog=SqliteCatalog(session),
        log=SqliteLog(connection, server),
        flow=SqliteFlow(connection, places),
        access=Access(session),
        audit=Audit(session),
        files=files,
        views=SqliteViews(connection, files),
        retention=SqliteRetention(connection),
        templates=Templates(session),
        schedules=Schedules(session),
        reactions=Reactions(session),
        placement=SqlitePlacement(session),
        statistics=Statistics(session),
        series=Series(session),
        deadlines=Deadlines(session),
        steps=SqliteSteps(connection, sequences),
        pools=Pools(session),
        inbox=Inbox(session),
    )

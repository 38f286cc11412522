"""One transaction: the roles over one connection, and the moment it takes place."""

from typing import NamedTuple

import apsw

from windlass.store.sqlite.core.flow import SqliteFlow
from windlass.store.sqlite.core.jobs import SqliteJobs
from windlass.store.sqlite.core.leases import SqliteLeases
from windlass.store.sqlite.core.limits import SqliteLimits
from windlass.store.sqlite.core.log import SqliteLog
from windlass.store.sqlite.core.places import SqlitePlaces
from windlass.store.sqlite.core.steps import SqliteSteps
from windlass.store.sqlite.core.workflows import SqliteWorkflows
from windlass.store.sqlite.fleet.access import SqliteAccess
from windlass.store.sqlite.fleet.catalog import SqliteCatalog
from windlass.store.sqlite.fleet.placement import SqlitePlacement
from windlass.store.sqlite.fleet.pools import SqlitePools
from windlass.store.sqlite.fleet.workers import SqliteWorkers
from windlass.store.sqlite.records.audit import SqliteAudit
from windlass.store.sqlite.records.files import SqliteFiles
from windlass.store.sqlite.records.inbox import SqliteInbox
from windlass.store.sqlite.records.retention import SqliteRetention
from windlass.store.sqlite.records.schedules import (
    SqliteReactions,
    SqliteSchedules,
    SqliteTemplates,
)
from windlass.store.sqlite.records.series import SqliteSeries
from windlass.store.sqlite.records.statistics import SqliteDeadlines, SqliteStatistics
from windlass.store.sqlite.records.views import SqliteViews
from windlass.store.sqlite.sequences import Sequences


class SqliteTx(NamedTuple):
    """`WriteTx`; the roles are made once for a connection, only `now` changes."""

    now: int
    jobs: SqliteJobs
    places: SqlitePlaces
    leases: SqliteLeases
    workers: SqliteWorkers
    workflows: SqliteWorkflows
    limits: SqliteLimits
    catalog: SqliteCatalog
    log: SqliteLog
    flow: SqliteFlow
    access: SqliteAccess
    audit: SqliteAudit
    files: SqliteFiles
    views: SqliteViews
    retention: SqliteRetention
    templates: SqliteTemplates
    schedules: SqliteSchedules
    reactions: SqliteReactions
    placement: SqlitePlacement
    statistics: SqliteStatistics
    series: SqliteSeries
    deadlines: SqliteDeadlines
    steps: SqliteSteps
    pools: SqlitePools
    inbox: SqliteInbox


def roles_over(connection: apsw.Connection, sequences: Sequences, server: str) -> SqliteTx:
    """Returns all roles over one connection."""
    files = SqliteFiles(connection)
    places = SqlitePlaces(connection)
    return SqliteTx(
        now=0,
        jobs=SqliteJobs(connection, sequences),
        places=places,
        leases=SqliteLeases(connection, sequences, places),
        workers=SqliteWorkers(connection, sequences),
        workflows=SqliteWorkflows(connection, sequences),
        limits=SqliteLimits(connection, sequences),
        catalog=SqliteCatalog(connection, sequences),
        log=SqliteLog(connection, server),
        flow=SqliteFlow(connection, places),
        access=SqliteAccess(connection, sequences),
        audit=SqliteAudit(connection, sequences),
        files=files,
        views=SqliteViews(connection, files),
        retention=SqliteRetention(connection),
        templates=SqliteTemplates(connection),
        schedules=SqliteSchedules(connection, sequences),
        reactions=SqliteReactions(connection, sequences),
        placement=SqlitePlacement(connection),
        statistics=SqliteStatistics(connection),
        series=SqliteSeries(connection),
        deadlines=SqliteDeadlines(connection),
        steps=SqliteSteps(connection, sequences),
        pools=SqlitePools(connection, sequences),
        inbox=SqliteInbox(connection, sequences),
    )

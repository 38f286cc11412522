"""One transaction: the roles over one connection, and the moment it takes place."""

from dataclasses import dataclass
from typing import Self

from windlass.store.sql.access import Access, Audit
from windlass.store.sql.files import Files
from windlass.store.sql.inbox import Inbox
from windlass.store.sql.pools import Pools
from windlass.store.sql.schedules import Reactions, Schedules, Templates
from windlass.store.sql.statistics import Deadlines, Series, Statistics
from windlass.store.sql.steps import Steps
from windlass.store.sql.transaction import WriteTx
from windlass.store.sql.workers import Workers
from windlass.store.sqlite.flow import SqliteFlow
from windlass.store.sqlite.places import SqliteLeases, SqlitePlaces
from windlass.store.sqlite.roles import (
    SqliteCatalog,
    SqliteJobs,
    SqliteLimits,
    SqliteLog,
    SqlitePlacement,
    SqliteRetention,
    SqliteViews,
    SqliteWorkflows,
)
from windlass.store.sqlite.session import SqliteSession


@dataclass(slots=True, kw_only=True)
class SqliteTx(WriteTx):
    """The roles are made once for a connection, only `now` changes."""

    places: SqlitePlaces

    def at(self, now: int) -> Self:
        """Returns the roles for the transaction that takes place now."""
        self.now = now
        return self


def roles_over(session: SqliteSession, server: str) -> SqliteTx:
    """Returns all roles over one connection."""
    places = SqlitePlaces(session)
    return SqliteTx(
        now=0,
        jobs=SqliteJobs(session),
        places=places,
        leases=SqliteLeases(session, places),
        workers=Workers(session),
        workflows=SqliteWorkflows(session),
        limits=SqliteLimits(session),
        catalog=SqliteCatalog(session),
        log=SqliteLog(session, server),
        flow=SqliteFlow(session, places),
        access=Access(session),
        audit=Audit(session),
        files=Files(session),
        views=SqliteViews(session),
        retention=SqliteRetention(session),
        templates=Templates(session),
        schedules=Schedules(session),
        reactions=Reactions(session),
        placement=SqlitePlacement(session),
        statistics=Statistics(session),
        series=Series(session),
        deadlines=Deadlines(session),
        steps=Steps(session),
        pools=Pools(session),
        inbox=Inbox(session),
    )

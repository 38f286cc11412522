"""One transaction: its roles over one connection, and its time."""

from dataclasses import dataclass
from typing import Self

from windlass.store.sql.transaction import WriteTx
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
    """The roles are made once per connection; only `now` changes."""

    places: SqlitePlaces

    def at(self, now: int) -> Self:
        """Returns the roles for a transaction at this time."""
        self.now = now
        return self


def roles_over(session: SqliteSession, server: str) -> SqliteTx:
    """Returns all roles over one connection."""
    places = SqlitePlaces(session)
    return SqliteTx(
        now=0,
        session=session,
        jobs=SqliteJobs(session),
        places=places,
        leases=SqliteLeases(session, places),
        workflows=SqliteWorkflows(session),
        limits=SqliteLimits(session),
        catalog=SqliteCatalog(session),
        log=SqliteLog(session, server),
        flow=SqliteFlow(session, places),
        views=SqliteViews(session),
        retention=SqliteRetention(session),
        placement=SqlitePlacement(session),
    )

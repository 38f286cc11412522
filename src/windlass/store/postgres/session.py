"""One connection in one transaction: run named statements and remember what COMMIT needs."""

from collections.abc import Coroutine
from typing import Any

import asyncpg

from windlass.domain.rows.gaps import Mark
from windlass.store.postgres.connections import Link
from windlass.store.sql import load_queries

QUERIES = load_queries("windlass.store.postgres", "core", "fleet", "records")

Rows = list[asyncpg.Record]


class Session:
    """What the roles of one transaction share."""

    __slots__ = ("event", "link", "statements", "vouches")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.statements = 0
        self.vouches = False
        """Whether its answer is what another transaction wrote, which must be durable by then."""
        self.event: Mark | None = None  # the newest that this transaction has written

    def fetch(self, name: str, *args: object) -> Coroutine[Any, Any, Rows]:
        self.statements += 1
        return self.link.connection.fetch(QUERIES[name], *args)

    def fetch_value(self, name: str, *args: object) -> Coroutine[Any, Any, Any]:
        self.statements += 1
        return self.link.connection.fetchval(QUERIES[name], *args)

    def execute(self, name: str, *args: object) -> Coroutine[Any, Any, str]:
        self.statements += 1
        return self.link.connection.execute(QUERIES[name], *args)

    def commit(self, mark: int, at: int) -> Coroutine[Any, Any, str]:
        """Notes with the commit, if there is something to commit, that it took place."""
        self.statements += 1
        noted = QUERIES["commit"] % (mark, at, self.vouches)
        return self.link.connection.execute(noted)

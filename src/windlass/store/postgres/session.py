"""One connection in one transaction: run named statements and remember what COMMIT needs."""

import re
from collections.abc import Coroutine, Mapping
from types import MappingProxyType
from typing import Any

import asyncpg

from windlass.store.postgres.pool import Link
from windlass.store.sql import load_queries

QUERIES = load_queries(
    "windlass.store.postgres",
    "queries.sql",
    "schedules.sql",
    "statistics.sql",
    "explain.sql",
    "placement.sql",
    "pools.sql",
)

_LOCK = re.compile(r" FOR (?:NO KEY UPDATE|UPDATE|SHARE)(?: OF \w+)?(?: SKIP LOCKED)?")

# A read works on its own snapshot and may not lock, so the same statements go without.
UNLOCKED: Mapping[str, str] = MappingProxyType(
    {name: _LOCK.sub("", statement) for name, statement in QUERIES.items()}
)

Rows = list[asyncpg.Record]


class Session:
    """What the roles of one transaction share."""

    __slots__ = ("link", "queries", "statements", "transaction_id")

    def __init__(self, link: Link, queries: Mapping[str, str] = QUERIES) -> None:
        self.link = link
        self.queries = queries
        self.statements = 0
        self.transaction_id = ""
        """Known once events were appended, which is the last thing before COMMIT."""

    def fetch(self, name: str, *args: object) -> Coroutine[Any, Any, Rows]:
        self.statements += 1
        return self.link.connection.fetch(self.queries[name], *args)

    def fetch_value(self, name: str, *args: object) -> Coroutine[Any, Any, Any]:
        self.statements += 1
        return self.link.connection.fetchval(self.queries[name], *args)

    def execute(self, name: str, *args: object) -> Coroutine[Any, Any, str]:
        self.statements += 1
        return self.link.connection.execute(self.queries[name], *args)

"""A connection on which every statement waits for its turn."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import asyncpg

from windlass.store.postgres.connections import Link, Pool, open_connection
from windlass.store.postgres.session import QUERIES

T = TypeVar("T")

NAMES = {statement: name for name, statement in QUERIES.items()}


def name_of(statement: str) -> str:
    """The name of a statement; COMMIT comes with what it notes."""
    return "commit" if statement.endswith("; COMMIT") else NAMES[statement]


class Gate:
    """Where one transaction stands: before a statement, in it, or at its end."""

    def __init__(self, moved: asyncio.Event) -> None:
        self._moved = moved
        self._turn: asyncio.Future[None] | None = None
        self.before = ""  # the statement it wants to run
        self.inside = ""  # the statement that runs
        self.waits = False  # the statement waits for a lock
        self.done = True
        self.deadlocks = 0

    @property
    def moves(self) -> bool:
        """Whether it is on its way to the next statement or to its end."""
        return not self.done and not self.before

    def open(self) -> str:
        """Let the statement run that stands before the gate."""
        assert self._turn is not None
        self.inside, self.before = self.before, ""
        self._turn.set_result(None)
        return self.inside

    def finish(self) -> None:
        """The command is over."""
        self.done = True
        self._moved.set()

    async def step(self, name: str, statement: Callable[[], Awaitable[T]]) -> T:
        """Wait for the turn, then run the statement."""
        self._turn = asyncio.get_running_loop().create_future()
        self.before = name
        self._moved.set()
        await self._turn
        try:
            return await statement()
        except asyncpg.DeadlockDetectedError:
            self.deadlocks += 1
            raise
        finally:
            self.inside = ""
            self.waits = False
            self._moved.set()


class GatedConnection:
    """What the store uses of an asyncpg connection, behind a gate."""

    def __init__(self, real: "asyncpg.Connection[Any]", gate: Gate) -> None:
        self._real = real
        self._gate = gate

    async def fetch(self, statement: str, *args: object) -> Any:
        real = self._real
        return await self._gate.step(name_of(statement), lambda: real.fetch(statement, *args))

    async def fetchval(self, statement: str, *args: object) -> Any:
        real = self._real
        return await self._gate.step(name_of(statement), lambda: real.fetchval(statement, *args))

    async def execute(self, statement: str, *args: object) -> Any:
        real = self._real
        return await self._gate.step(name_of(statement), lambda: real.execute(statement, *args))

    def get_server_pid(self) -> int:
        return self._real.get_server_pid()

    def is_closed(self) -> bool:
        return self._real.is_closed()

    def terminate(self) -> None:
        self._real.terminate()

    async def close(self) -> None:
        await self._real.close()


class OnePool:
    """A pool of one connection, so that a transaction is known by its process."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.round = 0  # it is never renewed

    async def acquire(self) -> Link:
        return self._link

    def release(self, link: Link) -> None:
        """It stays open."""

    def discard(self, link: Link) -> None:
        link.connection.terminate()


async def open_gated(dsn: str, gate: Gate) -> tuple[GatedConnection, Pool]:
    """A new connection behind `gate`, and the pool that lends it."""
    real = await open_connection(dsn)
    # A deadlock is a failure, so it is to be seen soon.
    await real.execute("SET deadlock_timeout = '30ms'")
    connection = GatedConnection(real, gate)
    link = Link(cast(Any, connection), 1, 0.0)
    link.started_us = 1  # only a lost answer would need the truth
    return connection, cast(Pool, OnePool(link))

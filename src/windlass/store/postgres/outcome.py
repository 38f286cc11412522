"""Find out what became of a transaction whose COMMIT was not answered.

Each transaction that writes something also leaves a mark, a number that no other has. Numbers of
transactions and of sequences do not tell: after a crash or a failover the database gives those
that did not become durable to others. The session is ended first, since nobody can finish its
transaction any more; after that, the mark is there or it is not. What is there may still wait for
a standby, so it counts once a commit of our own, which comes after it, is answered. That also
proves that this server is the one that takes writes.
"""

import asyncio

import asyncpg

from windlass.ports.loop_time import pass_time
from windlass.store.postgres.connections import Link, open_connection
from windlass.store.postgres.session import QUERIES

PAUSE_SECONDS = 0.05
GIVE_UP_SECONDS = 10.0


class _NotYetError(Exception):
    """The session has not ended."""


async def was_committed(dsn: str, link: Link, mark: int, at: int) -> bool | None:
    """Returns whether it was; None if nobody could tell in time, or not any more.

    `at` is the time that was noted with the mark.
    """
    try:
        async with asyncio.timeout(GIVE_UP_SECONDS):
            while True:
                try:
                    return await _look(dsn, link, mark, at)
                except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, _NotYetError):
                    await pass_time(PAUSE_SECONDS)
    except TimeoutError:
        return None


async def _look(dsn: str, link: Link, mark: int, at: int) -> bool | None:
    connection = await open_connection(dsn)
    try:
        ended = await connection.fetch(
            QUERIES["end_session"], link.process, link.started_us, link.transaction_us
        )
        if not all(row[0] for row in ended):
            raise _NotYetError
        committed: bool = await connection.fetchval(QUERIES["is_committed"], mark)
        forgotten: int = await connection.fetchval(QUERIES["commits_forgotten"])
        await connection.execute(QUERIES["vouch"])
        if committed:
            return True
        return None if at <= forgotten else False
    finally:
        connection.terminate()

"""Find out what became of a transaction whose COMMIT was not answered.

The server knows: `pg_xact_status` tells it for any recent transaction. While it says "in
progress" nobody can finish that transaction any more, so its process is ended; then it
has either committed or not, and is asked again. A hot submit is known by its call instead,
which it leaves in the counters.
"""

import asyncio
from typing import Any

import asyncpg

from windlass.ports.loop_time import pass_time
from windlass.store.postgres.connections import Link, open_connection
from windlass.store.postgres.failures import is_unavailable
from windlass.store.postgres.session import QUERIES

PAUSE_SECONDS = 0.05
GIVE_UP_SECONDS = 10.0


async def was_committed(dsn: str, transaction_id: str, process: int) -> bool | None:
    """Returns whether it was; None if nobody could tell in time."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + GIVE_UP_SECONDS
    while True:
        try:
            status = await _ask(dsn, transaction_id, process)
        except Exception as error:
            if not is_unavailable(error):
                raise
            status = "unreachable"
        if status not in {"in progress", "unreachable"}:
            return None if status is None else status == "committed"
        if loop.time() >= give_up_at:
            return None
        await pass_time(PAUSE_SECONDS)


async def jobs_of_call(
    dsn: str, link: Link, server: str, call: int, after: int
) -> list[tuple[int, int]] | None:
    """Returns (time, job) of a hot submit whose answer was lost, once its session has ended.

    Nothing was written if there are none; None if nobody could tell in time.
    """
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + GIVE_UP_SECONDS
    process = link.connection.get_server_pid()
    while True:
        try:
            connection = await open_connection(dsn)
            try:
                ended = await connection.fetch(QUERIES["end_session"], process, link.started_us)
                if all(row[0] for row in ended):
                    rows = await connection.fetch(
                        QUERIES["jobs_of_call"], server, link.slot, call, after
                    )
                    return [(row[0], row[1]) for row in rows]
            finally:
                connection.terminate()
        except Exception as error:
            if not is_unavailable(error):
                raise
        if loop.time() >= give_up_at:
            return None
        await pass_time(PAUSE_SECONDS)


async def _ask(dsn: str, transaction_id: str, process: int) -> str | None:
    connection: asyncpg.Connection[Any] = await open_connection(dsn)
    try:
        status: str | None = await connection.fetchval(
            QUERIES["transaction_status"], transaction_id
        )
        if status == "in progress":
            await connection.execute(QUERIES["end_transaction"], process, transaction_id)
        return status
    finally:
        connection.terminate()

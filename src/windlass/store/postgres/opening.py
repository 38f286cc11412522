"""Opens a store while PostgreSQL starts, restarts, or has no connection left.

Servers and workers are often started together with their database, or while it is overloaded.
Ending at once would only make somebody start them again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from windlass.domain.values.errors import StoreUnavailable
from windlass.domain.values.options import shown_ms
from windlass.ports.loop_time import pass_time
from windlass.store.postgres.store import PostgresStore

PAUSE_SECONDS: Final = 0.5
SAY_AGAIN_SECONDS: Final = 10.0

log = structlog.get_logger()


async def open_patiently(
    connect: Callable[[], Awaitable[PostgresStore]],
    limit_ms: int,
    stopped: Callable[[], bool] = lambda: False,
    restored: bool = False,
) -> PostgresStore:
    """Connects, again and again for `limit_ms` if need be, and checks what it finds.

    Raises `StoreUnavailable` if none came in time or the process is `stopped` meanwhile, and at
    once if waiting does not help: a wrong password, an unknown database. Raises `Conflict` if the
    schema is another one or, unless it may be `restored`, the database was restored from a dump.
    """
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + limit_ms / 1000
    say_at = loop.time()
    while True:
        try:
            return await _open(connect, restored)
        except StoreUnavailable as error:
            if not limit_ms or error.code != StoreUnavailable.code:
                raise
            if loop.time() >= give_up_at or stopped():
                ending = "stopped" if stopped() else f"gave up after {shown_ms(limit_ms)}"
                message = f"{error.message} ({ending}; store_wait sets how long to wait)"
                raise StoreUnavailable(message, outcome_unknown=False) from error
            if loop.time() >= say_at:
                left = max(0, round(1000 * (give_up_at - loop.time())))
                log.warning("waiting_for_store", error=error.message, at_most=shown_ms(left))
                say_at = loop.time() + SAY_AGAIN_SECONDS
        await pass_time(min(PAUSE_SECONDS, limit_ms / 1000))


async def _open(connect: Callable[[], Awaitable[PostgresStore]], restored: bool) -> PostgresStore:
    store = await connect()
    try:
        await store.check_schema()
        if not restored:
            await store.check_identity()
    except BaseException:
        await store.close()
        raise
    return store

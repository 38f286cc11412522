"""What errors of asyncpg mean, and what became of a transaction whose COMMIT was not answered.

Each transaction that writes also leaves a mark, a number that no other has. Numbers of transactions
and of sequences do not tell: after a crash or a failover, the database gives those that did not
become durable to others. We end the session first, so that nobody can finish its transaction any
more; after that, the mark is there or it is not. A mark that is there may still wait for a standby,
so it counts once a later commit of our own is answered. That also proves that this server takes
writes.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import asyncpg

from windlass.domain.values.errors import StoreUnavailable
from windlass.ports.loop_time import pass_time
from windlass.store.postgres.connections import Link, open_connection
from windlass.store.postgres.session import QUERIES

REFUSED: Final = "store_refused"  # the code of an error that waiting does not solve

_LOST = (
    OSError,  # with TimeoutError: a statement that is not answered counts as lost
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.DatabaseDroppedError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
    asyncpg.InternalClientError,
    asyncpg.InterfaceError,
)

# The database works but cannot do this now: disk full, too many connections, a standby.
_UNABLE = (
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.ObjectNotInPrerequisiteStateError,
    asyncpg.PostgresSystemError,
    asyncpg.DataCorruptedError,
    asyncpg.IndexCorruptedError,
)

# It refuses us, or this statement, until somebody changes its configuration.
_REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
)

RETRY = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


def is_lost(error: BaseException) -> bool:
    """Returns whether the connection is gone, so that an answer may be missing."""
    if isinstance(error, asyncpg.DataError):
        return False
    return isinstance(error, _LOST)


def is_unavailable(error: BaseException) -> bool:
    """Returns True if the store was unavailable, so that the request is not to blame."""
    return is_lost(error) or isinstance(error, (*_UNABLE, *_REFUSED))


def raise_as_unavailable(error: BaseException) -> NoReturn:
    """Raises `StoreUnavailable` if the database failed, else the error as it is."""
    if not is_unavailable(error):
        raise error
    unavailable = StoreUnavailable(describe(error), outcome_unknown=False)
    if isinstance(error, _REFUSED):
        unavailable.code = REFUSED
    raise unavailable from error


def outcome_unknown(error: BaseException) -> StoreUnavailable:
    """Returns the error for a transaction that may or may not have been committed."""
    advice = "whether this was done is not known; look, or send it again with the same key"
    return StoreUnavailable(f"{describe(error)}; {advice}", outcome_unknown=True)


@contextmanager
def wary(link: Link) -> Iterator[None]:
    """Treats a commit that the database warned about as unanswered.

    When a commit that waits for its standby is canceled, for example by `statement_timeout`, the
    database warns and then answers as if it had been replicated.
    """
    link.warned = False
    yield
    if link.warned:
        raise asyncpg.InterfaceError("the database warned that a commit might not be replicated")


def describe(error: BaseException) -> str:
    """Returns the error as one line for people."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, _REFUSED):
        return f"PostgreSQL refused: {text}"
    return f"PostgreSQL is not available: {text}"


PAUSE_SECONDS = 0.05
GIVE_UP_SECONDS = 10.0


class _NotYetError(Exception):
    """The session has not ended."""


async def was_committed(dsn: str, link: Link, mark: int, at: int) -> bool | None:
    """Returns whether it was committed; None if we could not find out in time, or the mark may be
    forgotten.

    `at` is the time recorded with the mark.
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

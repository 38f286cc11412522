"""Which errors of asyncpg mean what: the connection is gone, or the database asks to retry."""

import asyncpg

_LOST = (
    OSError,  # with TimeoutError: a statement that is not answered counts as lost
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InternalClientError,
    asyncpg.InterfaceError,
)

# The database works but cannot do this now: disk full, too many connections, a standby.
_UNABLE = (
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.QueryCanceledError,
)

RETRY = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


def is_lost(error: BaseException) -> bool:
    """Returns whether the connection is gone, so that an answer may be missing."""
    if isinstance(error, asyncpg.DataError):
        return False
    return isinstance(error, _LOST)


def is_unavailable(error: BaseException) -> bool:
    """Returns whether the store could not be used, through no fault of the request."""
    return is_lost(error) or isinstance(error, _UNABLE)


def describe(error: BaseException) -> str:
    """Returns one line for people, however the driver puts it."""
    text = " ".join(str(error).split()) or type(error).__name__
    return f"PostgreSQL is not available: {text}"

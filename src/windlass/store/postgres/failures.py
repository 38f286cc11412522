"""Which errors of asyncpg mean what: the connection is gone, or the database asks to retry."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import asyncpg

from windlass.domain.values.errors import StoreUnavailable
from windlass.store.postgres.connections import Link

REFUSED: Final = "store_refused"  # the code of an error that waiting does not help

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

# It does not let us in, or not do this, until somebody changes that.
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
    """Returns whether the store could not be used, through no fault of the request."""
    return is_lost(error) or isinstance(error, (*_UNABLE, *_REFUSED))


def raise_as_unavailable(error: BaseException) -> NoReturn:
    """Raises what callers know: `StoreUnavailable` where the database did not do its part."""
    if not is_unavailable(error):
        raise error
    unavailable = StoreUnavailable(describe(error), outcome_unknown=False)
    if isinstance(error, _REFUSED):
        unavailable.code = REFUSED
    raise unavailable from error


def outcome_unknown(error: BaseException) -> StoreUnavailable:
    """Returns what to raise if nobody can tell whether a transaction was committed."""
    advice = "whether this was done is not known; look, or send it again with the same key"
    return StoreUnavailable(f"{describe(error)}; {advice}", outcome_unknown=True)


@contextmanager
def wary(link: Link) -> Iterator[None]:
    """Takes a commit that the database warned of as unanswered.

    When a commit that waits for its standby is canceled, by `statement_timeout` for example, the
    database warns of that and then answers as if it had been replicated.
    """
    link.warned = False
    yield
    if link.warned:
        raise asyncpg.InterfaceError("the database warned that a commit might not be replicated")


def describe(error: BaseException) -> str:
    """Returns one line for people, however the driver puts it."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, _REFUSED):
        return f"PostgreSQL refused: {text}"
    return f"PostgreSQL is not available: {text}"

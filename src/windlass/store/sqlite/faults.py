"""What SQLite's errors mean to the engine: try again, make room, or restore a backup."""

from pathlib import Path

import apsw

from windlass.domain.values.errors import StoreUnavailable

_DAMAGED = (apsw.CorruptError, apsw.NotADBError)
_UNAVAILABLE = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.FullError,
    apsw.IOError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.PermissionsError,
    apsw.NoMemError,
    *_DAMAGED,
)


def as_unavailable(
    error: BaseException, path: Path, committing: bool = False
) -> StoreUnavailable | None:
    """The error to raise instead, or None if `error` does not speak of the store's health."""
    if not isinstance(error, _UNAVAILABLE):
        return None
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return refusal("store_busy", f"another connection is writing to {path}, try again")
    if isinstance(error, apsw.FullError):
        return refusal("disk_full", f"the disk that holds {path} is full, make room on it")
    if isinstance(error, _DAMAGED):
        return damaged(path, str(error))
    # The commit may have reached the disk, even if the confirmation did not.
    return StoreUnavailable(f"cannot use {path}: {error}", outcome_unknown=committing)


def refusal(code: str, message: str) -> StoreUnavailable:
    """Nothing was done, for a reason that has a code of its own."""
    error = StoreUnavailable(message, outcome_unknown=False)
    error.code = code
    return error


def damaged(path: Path, finding: str) -> StoreUnavailable:
    """The file cannot be trusted; say how to get back to one that can."""
    return refusal(
        "store_corrupt",
        f"expected {path} to be a sound Windlass database, got: {finding}. Stop the server "
        f"and restore the newest backup; without one, save what can be read with "
        f"`sqlite3 {path} .recover | sqlite3 recovered.db` and start on that file",
    )

"""Translates SQLite's errors for the engine: try again, free space, or restore a backup."""

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
    """Returns the error to raise instead, or None if the store is healthy."""
    if not isinstance(error, _UNAVAILABLE):
        return None
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return refusal("store_busy", f"another connection is writing to {path}; try again")
    if isinstance(error, apsw.FullError):
        return refusal("disk_full", f"the disk of {path} is full; free some space")
    if isinstance(error, _DAMAGED):
        return damaged(path, str(error))
    # The commit may have reached the disk, even if the confirmation did not.
    return StoreUnavailable(f"cannot use {path}: {error}", outcome_unknown=committing)


def refusal(code: str, message: str) -> StoreUnavailable:
    """Makes the error for a refusal that changed nothing."""
    error = StoreUnavailable(message, outcome_unknown=False)
    error.code = code
    return error


def damaged(path: Path, finding: str) -> StoreUnavailable:
    """Makes the error for a file that cannot be trusted, with the way back to one that can."""
    return refusal(
        "store_corrupt",
        f"{path} is damaged or not a Windlass database: {finding}. Stop the server and restore "
        f"the newest backup. Without a backup, save what can be read with "
        f"`sqlite3 {path} .recover | sqlite3 recovered.db` and start on that file",
    )

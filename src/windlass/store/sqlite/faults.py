"""Translates SQLite's errors for the engine: try again, free space, or restore a backup."""

from pathlib import Path
from typing import Final, NoReturn

import apsw

from windlass.domain.values.errors import StoreUnavailable

CORRUPT: Final = "store_corrupt"  # the code of the error for a damaged file

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


def raise_as_unavailable(error: BaseException, path: Path) -> NoReturn:
    """Raises the error that callers know in place of SQLite's, or the error as it is."""
    unavailable = as_unavailable(error, path)
    if unavailable is None:
        raise error
    raise unavailable from error


def refusal(code: str, message: str) -> StoreUnavailable:
    """Makes the error for a refusal that changed nothing."""
    error = StoreUnavailable(message, outcome_unknown=False)
    error.code = code
    return error


def damaged(path: Path, finding: str) -> StoreUnavailable:
    """Makes the error for a file that cannot be trusted, with the way back to one that can."""
    return refusal(
        CORRUPT,
        f"{path} is damaged or not a Windlass database: {' '.join(finding.split())}. Stop the "
        "server, keep a copy of the file and its -wal, and restore the newest backup. Without a "
        f"backup, save what can be read with `sqlite3 {path} .recover | sqlite3 recovered.db`, "
        "put that file in its place and check it with `windlass verify`. Then run "
        "`windlass db restored` and start the server",
    )

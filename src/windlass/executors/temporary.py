"""Folders for as long as a process lives; those of processes that were killed are found.

A folder is locked while its owner lives. Nobody can tidy up after a kill but those who come
later: each new folder removes those with the same prefix that nobody holds.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final, Self

MAX_PLACE: Final = 64


class TemporaryFolder:
    """A folder of this process's own below the system's place for such; `close` removes it."""

    def __init__(self, prefix: str) -> None:
        remove_abandoned(prefix)
        held = None
        while held is None:  # Another may take a folder for abandoned before it is locked.
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=_place()))
            held = _hold(self.path)
        self._held = held

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)


def remove_abandoned(prefix: str) -> None:
    """Removes the folders of this user's processes that have ended without doing so."""
    for path in _place().glob(f"{prefix}*"):
        held = _hold(path)
        if held is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(held)


def _place() -> Path:
    """Returns the system's temporary folder, or a shorter path: sockets allow 107 bytes."""
    place = Path(tempfile.gettempdir())
    # In there, `mkdtemp` makes a folder that only this user can enter.
    return place if len(os.fsencode(place)) <= MAX_PLACE else Path("/tmp")  # nosec B108


def _hold(path: Path) -> int | None:
    """Locks a folder; None if another holds it, or it is not there, or another user's."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(held).st_uid == os.getuid() and path.exists():
            return held
    except OSError:
        pass
    os.close(held)
    return None

"""Folders that live as long as the process that made them.

A folder is locked while its owner lives. A killed process leaves its folders: whoever makes a new
one with the same prefix removes those that are not locked.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final, Self

MAX_PLACE: Final = 64


class TemporaryFolder:
    """A folder of this process's own below the system's temporary folder; `close` removes it."""

    def __init__(self, prefix: str) -> None:
        remove_abandoned(prefix)
        held = None
        while held is None:  # Another process may consider a folder abandoned before it is locked.
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=_place()))
            held = _hold(self.path)
        self._held = held

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes it with its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)


def remove_abandoned(prefix: str) -> None:
    """Removes the folders of this user's processes that ended without doing so."""
    for path in _place().glob(f"{prefix}*"):
        held = _hold(path)
        if held is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(held)


def _place() -> Path:
    """Returns the system's temporary folder, or a shorter path: sockets allow 107 bytes."""
    place = Path(tempfile.gettempdir())
    # There, `mkdtemp` makes a folder that only this user can enter.
    return place if len(os.fsencode(place)) <= MAX_PLACE else Path("/tmp")  # nosec B108


def _hold(path: Path) -> int | None:
    """Locks a folder; returns None if another holds it, it is missing, or it is another user's."""
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

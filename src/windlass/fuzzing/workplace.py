"""A folder of this machine that one run has to itself, and the next one finds again.

Mirrors of repositories are large, so they stay. Two runs at the same time get a folder each.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import Conflict
from windlass.fuzzing.archives import room_needed

MOST: Final = 64


def default_root() -> Path:
    """Where caches belong; WINDLASS_FUZZ_WORK names another place."""
    named = os.environ.get("WINDLASS_FUZZ_WORK")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "windlass" / "fuzz"


@contextmanager
def workplace(root: Path, solver: str, role: str) -> Iterator[Path]:
    """The first folder below `root` that nobody works in."""
    for number in range(1, MOST + 1):
        folder = root.absolute() / solver / f"{role}-{number}"
        with room_needed(root):
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        try:
            yield folder
        finally:
            os.close(lock)
        return
    raise Conflict("busy", f"expected a free folder below {root}, found {MOST} in use")

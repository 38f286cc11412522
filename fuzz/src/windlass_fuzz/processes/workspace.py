"""A folder on this machine that one run has to itself and the next run reuses.

Mirrors of repositories are large, so they are kept. Runs at the same time get different
folders.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import Conflict
from windlass_fuzz.processes.disk_space import report_disk_full

MAX_COUNT: Final = 64


def default_root() -> Path:
    """Returns WINDLASS_FUZZ_WORK, or else a folder in the user's cache."""
    named = os.environ.get("WINDLASS_FUZZ_WORK")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "windlass" / "fuzz"


@contextmanager
def workspace(root: Path, solver: str, role: str) -> Iterator[Path]:
    """Yields the first folder below `root` that no other run is using."""
    for number in range(1, MAX_COUNT + 1):
        folder = root.absolute() / solver / f"{role}-{number}"
        with report_disk_full(root):
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
    raise Conflict("busy", f"no free workspace below {root}: all {MAX_COUNT} folders are in use")

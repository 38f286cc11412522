"""Keeps workers of one machine from offering the same GPU, when each finds all of them.

A file per GPU is locked while a worker lives; the system lets go of it when the worker dies.
"""

import fcntl
import os
import tempfile
from pathlib import Path

import structlog

log = structlog.get_logger()


class GpuLocks:
    """The locks of one worker, in a folder that all workers of a user share."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir()) / f"windlass-gpus-{os.getuid()}"
        self._held: list[int] = []

    def take(self, name: str) -> bool:
        """Takes a GPU for this worker; False if another worker has it."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if self._folder.lstat().st_uid != os.getuid():
                raise PermissionError(f"{self._folder} belongs to another user")
            path = self._folder / name.replace("/", "_")
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            log.warning("gpu_not_locked", gpu=name, error=str(error))
            return True  # Nothing can be known of other workers.
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            log.info("gpu_taken", gpu=name, message="another worker of this machine offers it")
            return False
        self._held.append(fd)
        return True

    def close(self) -> None:
        """Lets go of all of them."""
        for fd in self._held:
            os.close(fd)
        self._held.clear()

"""The agent's directory: its lock, what it remembers, and the folders of its jobs."""

import fcntl
import os
from pathlib import Path

import msgspec

from windlass.domain.values.errors import Conflict


class Memory(msgspec.Struct, frozen=True):
    """What outlives the agent: the newest incarnation it was given, and the epoch."""

    incarnation: int = 0
    epoch: int = 0
    token: str | None = None


class StateDirectory:
    """Belongs to one agent at a time: opening it takes the lock, or raises `Conflict`."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise Conflict(
                "state_in_use",
                f"another worker runs on {self.path}: stop it, or give this one a directory "
                "of its own",
            ) from None
        self.memory = self._recall()

    @property
    def record(self) -> Path:
        """Where the keeper names the live process groups."""
        return self.path / "groups"

    @property
    def scratch(self) -> Path:
        """Where the folders of jobs are."""
        return self.path / "scratch"

    @property
    def marker(self) -> str:
        """What tells the processes of this directory's jobs from all others."""
        return str(self.path)

    def remember(self, memory: Memory) -> None:
        """Keeps this for the next start."""
        if memory == self.memory:
            return
        fresh = self.path / "memory.new"
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(msgspec.json.encode(memory))
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self.path / "memory")
        self.memory = memory

    def _recall(self) -> Memory:
        return recall(self.path)

    def close(self) -> None:
        """Lets go of the lock."""
        os.close(self._lock)


def recall(path: Path) -> Memory:
    """Reads what the last agent of a directory remembered; empty if there was none."""
    try:
        return msgspec.json.decode((path / "memory").read_bytes(), type=Memory)
    except (OSError, msgspec.DecodeError):
        return Memory()

"""The agent's directory: its lock, what it remembers, and the folders of its jobs."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from windlass.domain.values.errors import Conflict, WindlassError
from windlass.messages.sync import Stopped
from windlass.worker.keeper.outside import place_of

# What reading one of our files may raise if it is damaged.
DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class StateUnusable(WindlassError):
    """The state directory cannot be written to: its disk is full, or access is denied."""

    code = "state_unusable"


class Memory(msgspec.Struct, frozen=True):
    """What outlives the agent: its newest incarnation, the epoch, and its token.

    `accepted` means that a server knows the token.
    """

    incarnation: int = 0
    epoch: int = 0
    token: str | None = None
    accepted: bool = False


class StateDirectory:
    """Belongs to one agent at a time: opening it takes the lock, or raises `Conflict`."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        with self.writing():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise Conflict(
                "state_in_use",
                f"another worker runs on {self.path}: stop it, or give this one its own directory",
            ) from None
        self.memory = recall(self.path)
        self.stopped = self._read_stopped()  # how the last agent ended, if it was stopped

    @property
    def record(self) -> Path:
        """Returns the file in which the keeper lists the live process groups."""
        return self.path / "groups"

    @property
    def scratch(self) -> Path:
        """Returns where the folders of jobs are."""
        return self.path / "scratch"

    @property
    def containers(self) -> Path:
        """Returns the folder with one subfolder per container, which says how to end it."""
        return Path(place_of(str(self.record)))

    @property
    def marker(self) -> str:
        """Returns the marker by which processes of this directory's jobs are recognised."""
        return str(self.path)

    def remember(self, memory: Memory) -> None:
        """Stores this for the next start."""
        if memory != self.memory:
            self._write("memory", msgspec.json.encode(memory))
            self.memory = memory

    def note_stop(self, stopped: Stopped) -> None:
        """Stores what the next agent has to tell the server."""
        if stopped != self.stopped:
            self._write("stopped", msgspec.json.encode(stopped))
            self.stopped = stopped

    def forget_stop(self) -> None:
        """Removes it: the server knows."""
        if self.stopped is not None:
            (self.path / "stopped").unlink(missing_ok=True)
            self.stopped = None

    def _read_stopped(self) -> Stopped | None:
        try:
            return msgspec.json.decode((self.path / "stopped").read_bytes(), type=Stopped)
        except (OSError, *DAMAGED):
            return None

    def _write(self, name: str, data: bytes) -> None:
        """Replaces a file atomically, so that a killed agent leaves the old or the new one."""
        fresh = self.path / f"{name}.new"
        with self.writing():
            fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.rename(self.path / name)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raises `StateUnusable` if the directory cannot be written to."""
        try:
            yield
        except OSError as error:
            raise StateUnusable(
                f"cannot write to {self.path}: {error.strerror or error}; free some space there, "
                "or choose another directory with --state"
            ) from error

    def keep_token(self, token: str, accepted: bool) -> None:
        """Stores the worker's token; `accepted` once a server knows it."""
        self.remember(replace(self.memory, token=token, accepted=accepted))

    def close(self) -> None:
        """Releases the lock."""
        os.close(self._lock)


def recall(path: Path) -> Memory:
    """Reads what the last agent of a directory remembered; empty if there was none."""
    try:
        return msgspec.json.decode((path / "memory").read_bytes(), type=Memory)
    except (OSError, *DAMAGED):
        return Memory()

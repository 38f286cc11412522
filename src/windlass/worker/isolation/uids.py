"""The uids of jobs: each attempt has one for itself, also among several workers of a machine.

Killing all processes of a uid is safe only if nobody else uses it. So a file per uid is locked
while it is in use; the system lets go of it when the worker dies.
"""

import fcntl
import os
import pwd
import stat
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import InvalidInput, WindlassError

DEFAULT_RANGE: Final = "70000-70999"  # above those that user accounts and services get
LOCKS: Final = Path("/run/windlass-uids")
LOWEST: Final = 1000
HIGHEST: Final = 2**32 - 3


class NoFreeUid(WindlassError):
    """All uids of the range are in use."""

    code = "no_free_uid"


def parse_range(text: str) -> range:
    """Parses FIRST-LAST; raises `InvalidInput`."""
    first, _, last = text.partition("-")
    try:
        found = range(int(first), int(last or first) + 1)
    except ValueError:
        found = range(0)
    if not found or found[0] < LOWEST or found[-1] > HIGHEST:
        raise InvalidInput("uids", f"FIRST-LAST, from {LOWEST} on, such as {DEFAULT_RANGE}", text)
    return found


class Uids:
    """The uids that one worker gives to jobs."""

    def __init__(self, uids: range, locks: Path = LOCKS) -> None:
        self._uids = uids
        self._locks = locks
        self._held: dict[int, int] = {}  # the descriptors of their locks
        self._free: list[int] = []

    def take(self) -> int:
        """Returns a uid that no other attempt has; raises `NoFreeUid`."""
        if self._free:
            return self._free.pop()
        for uid in self._uids:
            if uid not in self._held and self._lock(uid):
                return uid
        raise NoFreeUid(f"all uids from {self._uids[0]} to {self._uids[-1]} are in use")

    def give_back(self, uid: int) -> None:
        """Keeps a uid for the next attempt: none of its processes is left."""
        self._free.append(uid)

    def close(self) -> None:
        """Lets go of all of them."""
        for fd in self._held.values():
            os.close(fd)
        self._held.clear()
        self._free.clear()

    def check(self) -> str | None:
        """Returns why locks cannot be taken; None if they can."""
        try:
            self._folder()
        except OSError as error:
            return f"cannot use {self._locks}: {error.strerror or error}"
        return None

    def _folder(self) -> Path:
        self._locks.mkdir(mode=0o700, exist_ok=True)
        found = self._locks.lstat()
        if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
            raise PermissionError(1, "it belongs to another user")
        return self._locks

    def _lock(self, uid: int) -> bool:
        if _is_account(uid):
            return False
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._folder() / str(uid), flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._held[uid] = fd
        return True


def _is_account(uid: int) -> bool:
    """Returns whether somebody has this uid."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True

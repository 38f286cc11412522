"""The uids of jobs: each attempt has its own, even among several workers of a machine.

Killing all processes of a uid is safe only if nobody else uses it. So a file per uid is locked
while it is in use; the system releases it when the worker dies.

A worker that is not root uses the subordinate uids of its user. /etc/subuid and /etc/subgid name
them, and `newuidmap` and `newgidmap` (package uidmap) put them into a user namespace. There the
worker's user is root, and each attempt has a uid of its own.
"""

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.worker.keeper.namespaces import make_users

DEFAULT_RANGE: Final = "70000-70999"  # above those of user accounts and services
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
        """Frees a uid for the next attempt: none of its processes is left."""
        self._free.append(uid)

    def close(self) -> None:
        """Releases all of them."""
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
    """Returns whether a user account has this uid."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


PROGRAMS: Final = ("newuidmap", "newgidmap")
FILES: Final = (Path("/etc/subuid"), Path("/etc/subgid"))
PLACE: Final = "/var/tmp/windlass-{}"  # nosec B108 - we check who owns it
PATIENCE_S: Final = 10


class NoSubordinateUids(WindlassError):
    """This user has none, or they cannot be used."""

    code = "no_subordinate_uids"


class Share(NamedTuple):
    """A range of subordinate ids: `count` ids from `first` on."""

    first: int
    size: int


def place_of_user() -> Path:
    """Returns the folder for the job folders of this user's workers."""
    return Path(PLACE.format(os.geteuid()))


def find_share() -> Share:
    """Returns the ids of this user, equal as uids and gids; raises `NoSubordinateUids`."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            raise NoSubordinateUids(
                f"the worker does not run as root, and {program} (package uidmap) is not installed"
            )
    uids, gids = (_read_share(file) for file in FILES)
    first = max(uids.first, gids.first)
    last = min(uids.first + uids.size, gids.first + gids.size)
    if last <= first:
        raise NoSubordinateUids("the uids and gids set aside for the worker's user differ")
    return Share(first, last - first)


def make_namespace(share: Share) -> int:
    """Returns a user namespace with these ids, in which this user is root.

    Raises `NoSubordinateUids`.
    """
    try:
        return make_users(lambda pid: _assign(pid, share))
    except OSError as error:
        raise NoSubordinateUids(f"user namespaces do not work here ({error.strerror})") from error


def _assign(pid: int, share: Share) -> None:
    same = [str(share.first), str(share.first), str(share.size)]
    for program, own in zip(PROGRAMS, (os.geteuid(), os.getegid()), strict=True):
        done = subprocess.run(
            [program, str(pid), "0", str(own), "1", *same],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise NoSubordinateUids(f"{program} failed: {done.stderr.strip()}")


def _read_share(file: Path) -> Share:
    """Returns the first range of ids that a file assigns to this user, by name or uid."""
    uid = os.geteuid()
    names = {str(uid)}
    try:
        names.add(pwd.getpwuid(uid).pw_name)
    except KeyError:
        pass
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, numbers = line.partition(":")
        first, _, count = numbers.partition(":")
        if name in names and first.isdigit() and count.isdigit() and int(count) > 0:
            return Share(int(first), int(count))
    raise NoSubordinateUids(
        f"the worker does not run as root, and {file} has no entry for its user"
    )

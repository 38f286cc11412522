"""The users that jobs of one worker run as, and the folder that they can reach.

Each attempt has a uid of its own, even among several workers of a machine. Killing all processes of
a uid is safe only if nobody else uses it. So a file per uid is locked while it is in use; the
system releases it when the worker dies.

A worker that is root takes uids of its own range. Any other uses the subordinate uids of its user.
/etc/subuid and /etc/subgid name them, and `newuidmap` and `newgidmap` (package uidmap) put them
into a user namespace. There the worker's user is root.

The worker's state directory is closed to these users, and may be below a home directory that is
closed as well, so their files are kept elsewhere.
"""

import contextlib
import fcntl
import hashlib
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.worker.keeper.namespaces import make_users, run_in_users

DEFAULT_RANGE: Final = "70000-70999"  # above those of user accounts and services
LOCKS: Final = Path("/run/windlass-uids")
LOWEST: Final = 1000
HIGHEST: Final = 2**32 - 3

ROOT: Final = Path("/var/lib/windlass")
YOUNG_S: Final = 60  # a worker that has just made its folder may not have locked it yet
PASSABLE: Final = 0o711  # others can pass through a folder, but not list it


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
    """A range of subordinate ids: `size` ids from `first` on."""

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


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


class UserPlace:
    """A folder for the scratch directories of jobs and the socket by which they submit others.

    Others can pass through it, but not list it.
    """

    def __init__(
        self, state: Path, root: Path = ROOT, remove: Callable[[Path], None] = _remove
    ) -> None:
        self._root = root
        self._remove = remove
        self._held: int | None = None
        self.path = root / hashlib.sha256(os.fsencode(state)).hexdigest()[:16]

    @property
    def scratch(self) -> Path:
        """Returns where the folders of jobs are."""
        return self.path / "scratch"

    def open(self) -> None:
        """Makes it; raises `OSError`."""
        for folder in (self._root, self.path):
            folder.mkdir(mode=PASSABLE, parents=True, exist_ok=True)
            found = folder.lstat()
            if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
                raise PermissionError(1, f"{folder} belongs to another user")
            folder.chmod(PASSABLE)
        self._held = _lock(self.path)
        self._remove_abandoned()

    def close(self) -> None:
        """Removes it."""
        self._remove(self.path)
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _remove_abandoned(self) -> None:
        """Removes the folders of workers that were killed and did not come back."""
        for folder in self._root.iterdir():
            if folder == self.path:
                continue
            with contextlib.suppress(OSError):
                settled = folder.stat().st_mtime < self.path.stat().st_mtime - YOUNG_S
                held = _lock(folder) if settled else None
                if held is not None:
                    self._remove(folder)
                    os.close(held)


def _lock(folder: Path) -> int | None:
    """Locks a folder while its worker lives; returns None if another holds it."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    return held


def startable_by_all(path: str) -> bool:
    """Returns whether every user of the machine can start a program, which may be a script."""
    return readable_by_all(path) and bool(os.stat(path).st_mode & stat.S_IXOTH)


def readable_by_all(path: str) -> bool:
    """Returns whether every user of the machine can read a file."""
    try:
        file = Path(path).resolve(strict=True)
        passable = all(folder.stat().st_mode & stat.S_IXOTH for folder in file.parents)
        return bool(passable and file.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


class JobUsers:
    """`uids` and `place` are valid once it is open; `namespace` is -1 if they need none."""

    def __init__(self, state: Path, own_range: str) -> None:
        self.is_root = os.geteuid() == 0
        self.namespace = -1
        root = ROOT if self.is_root else place_of_user()
        self.place = UserPlace(state, root, self._remove)
        self.uids = Uids(parse_range(own_range))

    def open(self) -> str | None:
        """Opens them; returns why that is impossible. Raises `OSError` if the worker is root."""
        if self.is_root:
            self.place.open()
            return None
        try:
            share = find_share()
            self.namespace = make_namespace(share)
            self.place.open()
        except NoSubordinateUids as error:
            return error.message
        except OSError as error:
            return f"cannot use {self.place.path}: {error.strerror or error}"
        self.uids = Uids(range(share.first, share.first + share.size), locks_of_user())
        return None

    def close(self) -> None:
        """Releases everything and removes the folder."""
        self.uids.close()
        if self.is_root or self.namespace >= 0:
            self.place.close()
        if self.namespace >= 0:
            os.close(self.namespace)
            self.namespace = -1

    def _remove(self, folder: Path) -> None:
        """Removes a folder with files of jobs' users."""
        if self.namespace >= 0:
            run_in_users(self.namespace, lambda: shutil.rmtree(folder, ignore_errors=True))
        else:
            shutil.rmtree(folder, ignore_errors=True)


def locks_of_user() -> Path:
    """Returns the folder with the locks of uids in use."""
    return LOCKS if os.geteuid() == 0 else Path(f"{place_of_user()}-uids")


def try_users() -> tuple[Uids, str | None]:
    """Returns the uids for jobs, or why there are none, without making a folder."""
    uids = Uids(parse_range(DEFAULT_RANGE))
    if os.geteuid() == 0:
        return uids, None
    try:
        os.close(make_namespace(find_share()))
    except NoSubordinateUids as error:
        return uids, error.message
    return Uids(range(0), locks_of_user()), None

"""The users that jobs of one worker run as, and the folder that they can reach.

A worker that is root takes uids of its own range. Any other needs subordinate uids, which live in a
user namespace. The worker's state directory is closed to these users, and may be below a home
directory that is closed as well, so their files are kept elsewhere.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from windlass.worker.isolation.uids import (
    DEFAULT_RANGE,
    LOCKS,
    NoSubordinateUids,
    Uids,
    find_share,
    make_namespace,
    parse_range,
    place_of_user,
)
from windlass.worker.keeper.namespaces import run_in_users

ROOT: Final = Path("/var/lib/windlass")
YOUNG_S: Final = 60  # a worker that has just made its folder may not have locked it yet
PASSABLE: Final = 0o711  # others can pass through a folder, but not list it


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
        """Returns why there are none; None if there are. Raises `OSError` if the worker is root."""
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
    """Returns uids for jobs of this user's worker, or why there are none, without making a
    folder.
    """
    uids = Uids(parse_range(DEFAULT_RANGE))
    if os.geteuid() == 0:
        return uids, None
    try:
        os.close(make_namespace(find_share()))
    except NoSubordinateUids as error:
        return uids, error.message
    return Uids(range(0), locks_of_user()), None

"""The walls between the programs of jobs and everything else: rules, namespaces, folders.

The keeper has one `Walls`, as told by the agent. The standard library only: the keeper imports this
file.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from windlass.worker.keeper import landlock, namespaces
from windlass.worker.keeper.launch import Start, nothing

VIEW = "view"  # a user and a mount namespace without Windlass's own files
USERS = "users"  # a user namespace that has the uids of jobs
CLOSED = "closed"  # folders that rules close to programs, and what stays open inside them

Prepare = Callable[[], None] | None
Finish = Callable[[], None]


def enter(path: str, make: bool, user: int | None) -> None:
    """Enters a folder, for the process that is started next; folders are reused."""
    try:
        os.chdir(path)
    except FileNotFoundError:
        if not make:
            raise
        make_folder(path)
        os.chdir(path)
    if make and user is not None:
        hand_over(path, user)


def make_folder(path: str) -> None:
    """Makes a folder that is closed to other users, if it is not there."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass


def hand_over(path: str, user: int) -> None:
    """Gives a folder to another user, with what the agent has put there."""
    os.chown(path, user, user)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            place = f"{folder}/{name}"
            if os.lstat(place).st_uid == os.getuid():
                os.chown(place, user, user, follow_symlinks=False)


def take_back(path: str) -> None:
    """Takes a folder back with everything in it; nobody else may use it meanwhile.

    Files of other users stay as they are.
    """
    me, group = os.geteuid(), os.getegid()
    os.chown(path, me, group, follow_symlinks=False)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            with suppress(PermissionError):
                os.chown(f"{folder}/{name}", me, group, follow_symlinks=False)


def holds_something(path: str) -> bool:
    """Returns whether a folder is not empty, or cannot be read."""
    try:
        return bool(os.listdir(path))
    except OSError:
        return True


class Walls:
    """Knows how a process becomes a program of a job; a missing descriptor is -1."""

    def __init__(self) -> None:
        self._version = landlock.version()
        self._root = os.geteuid() == 0
        self._apart = landlock.keep_apart(self._version) if self._version else -1
        self._view: tuple[int, int] | None = None
        self._users = -1
        self._closed: tuple[str, ...] = ()
        self._kept: tuple[str, ...] = ()
        self._rules = -1
        self._seen: tuple[int, ...] = ()  # when the folders above last changed

    def add(self, kind: str, *parts: Any) -> None:
        """Adds what the agent reports: the folders of `CLOSED`, else descriptors from a queue.

        The last argument is that queue.
        """
        *folders, fds = parts
        if kind == VIEW:
            self._view = fds.popleft(), fds.popleft()
        elif kind == USERS:
            self._users = fds.popleft()
        elif kind == CLOSED:
            closed, kept = folders
            self._closed, self._kept = tuple(closed), tuple(kept)

    @property
    def entering_users(self) -> Prepare:
        """Returns what to call before using files of jobs' users; None if nothing."""
        return self.enter_users if self._users >= 0 else None

    def enter_users(self) -> None:
        """Enters the namespace with the uids of jobs, if they have one."""
        if self._users >= 0:
            namespaces.enter_users(self._users)

    def steps(self, start: Start, folder: str | None, make: bool) -> tuple[Prepare, Finish]:
        """Returns what a process calls before it becomes a user, if anything, and afterwards.

        `make`: the folder is the program's own. Raises `OSError`.
        """
        finish: Finish = nothing
        rules = self._rules_for(start)
        if rules >= 0:
            finish = partial(landlock.restrict, rules, gains=self._root)
        if start.user is not None and not start.nested and self._users >= 0:
            return partial(self.go_as_user, start.user, folder, make), finish
        if start.kept_out and self._view is not None:
            return partial(namespaces.enter_view, *self._view), finish
        return None, finish

    def _rules_for(self, start: Start) -> int:
        """Returns the rules for a program; -1 for none."""
        if not start.apart:
            return -1
        if start.kept_out and self._closed:
            return self._closing()
        # Rules of older kernels forbid mounting, which root and wrapper programs may need.
        mounts = start.nested or self._root
        return -1 if mounts and self._version < landlock.SCOPES else self._apart

    def _closing(self) -> int:
        """Returns the rules that close folders; made again when something appeared beside them."""
        above = sorted({parent for path in self._closed for parent in landlock.parents(path)})
        seen = tuple(os.stat(path).st_mtime_ns for path in above)
        if seen != self._seen:
            old = self._rules
            self._rules = landlock.close_folders(self._version, self._closed, self._kept)
            self._seen = seen
            if old >= 0:
                os.close(old)
        return self._rules

    def go_as_user(self, user: int, folder: str | None, give: bool) -> None:
        """Enters the users' namespace and a folder there; with `give`, changes its owner."""
        self.enter_users()
        if folder is not None:
            os.chdir(folder)
            if give:
                hand_over(folder, user)

    def go_to(self, folder: str, make: bool, start: Start) -> None:
        """Enters the folder of a program, unless only its user can; raises `OSError`."""
        if start.user is None or self._users < 0:
            enter(folder, make, start.user)
        elif make:
            make_folder(folder)

    def return_folder(self, user: int | None, folder: str | None) -> int:
        """Starts to return a user's folder to the keeper; returns the pid, 0 if already done."""
        if user is None or folder is None or self._users < 0:
            return 0
        return _forked(lambda: self._return(folder))

    def _return(self, path: str) -> None:
        self.enter_users()
        take_back(path)


def _forked(act: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    return pid

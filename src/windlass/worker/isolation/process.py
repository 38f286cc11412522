"""The modes without walls of their own: `process` and `user`.

In `process`, a program runs as the worker's user, in a process group of its own. In `user`, the
programs of each attempt run under a uid that nothing else has.

Jobs in `process` are kept away from Windlass's own files, although the user is the same: the
worker's token, the keeper's record, and the data directory of a server here. There are two ways,
and a machine may have neither:

- *rules* of Landlock close the folders. Rules can only open something, so they open all that is
  beside the folders above, and what appears there later stays closed. So they are used only where
  jobs cannot write to a folder above, as with /var/lib/windlass.
- a *view*: namespaces in which the folders are empty. It takes longer to start a program there,
  and files of other users seem to belong to nobody.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from windlass.domain.matching.isolation import Isolation
from windlass.worker.isolation.confinement import Confinement, Wish
from windlass.worker.isolation.job_users import Uids
from windlass.worker.keeper import landlock
from windlass.worker.keeper.client import KeeperClient
from windlass.worker.keeper.kept_process import Program
from windlass.worker.keeper.launch import Start
from windlass.worker.keeper.namespaces import make_view

OWN_FILES: Final = "isolation:own_files"  # metadata: how they are hidden from jobs in `process`
SIGNALS: Final = "isolation:signals"  # metadata: what keeps jobs from signalling others
OPEN: Final = "open"

Way = Literal["rules", "view", "open"]


class ProcessMode:
    """Implements `IsolationMode`."""

    name: Isolation = "process"

    async def why_not(self) -> str | None:
        """Returns None: every machine supports it."""
        return None

    def enter(self, wish: Wish) -> Confinement:
        """Returns the same for every attempt."""
        del wish
        return Unconfined()


class Unconfined:
    """Implements `Confinement`: changes nothing."""

    async def wrap(self, program: Program) -> Program:
        """Returns the program as it is."""
        return program

    async def leave(self) -> None:
        """Does nothing."""


class UserMode:
    """Implements `IsolationMode`."""

    name: Isolation = "user"

    def __init__(self, uids: Uids, lacking: str | None = None) -> None:
        self._uids = uids
        self._lacking = lacking

    async def why_not(self) -> str | None:
        """Returns why not: only root and users with subordinate uids can become other users."""
        return self._lacking or self._uids.check()

    def enter(self, wish: Wish) -> Confinement:
        """Takes a uid for the attempt."""
        return OwnUser(self._uids, str(wish.scratch))


class OwnUser:
    """Implements `Confinement`."""

    def __init__(self, uids: Uids, home: str) -> None:
        self._uids = uids
        self._uid = uids.take()
        self._home = home

    async def wrap(self, program: Program) -> Program:
        """Returns the program with another user; its scratch directory is that user's home.

        If the job sets HOME itself, it stays.
        """
        env = {**home_of(self._uid, self._home), **program.env}
        return replace(program, env=env, start=Start(user=self._uid, apart=True))

    async def leave(self) -> None:
        """Gives the uid back; the keeper has killed its processes."""
        self._uids.give_back(self._uid)


def home_of(uid: int, home: str) -> dict[str, str]:
    """Returns the variables that describe a user without an account."""
    return {"HOME": home, "USER": str(uid), "LOGNAME": str(uid)}


class Hiding(NamedTuple):
    """How files are hidden; `reason` says why they are open."""

    way: Way
    reason: str = ""


def signals_kept_by() -> str:
    """Returns what keeps jobs from signalling processes of others."""
    return "landlock" if landlock.version() >= landlock.SCOPES else OPEN


def choose_hiding(folders: Iterable[Path]) -> Hiding:
    """Returns how this machine can hide these folders from jobs of the same user."""
    known = landlock.version()
    if os.geteuid() == 0:
        return Hiding(OPEN, "the worker runs as root, and so do its jobs")
    if not known:
        return Hiding(OPEN, "this kernel has no Landlock (5.13 or newer)")
    if known >= landlock.MOVES and not any(map(_can_write_above, _outermost(folders))):
        return Hiding("rules")
    try:
        for fd in make_view([], []):
            os.close(fd)
    except OSError as error:
        reason = f"user namespaces do not work here ({error.strerror})"
        return Hiding(OPEN, f"jobs can write to a folder above them, and {reason}")
    return Hiding("view")


def hide(keeper: KeeperClient, way: Way, folders: Sequence[Path], kept: Iterable[Path]) -> None:
    """Hides folders from all programs that the keeper keeps out; raises `OSError`.

    `kept` is what jobs need even inside these folders.
    """
    hidden = _outermost(folders)
    needed = [os.path.realpath(path) for path in kept if path.exists()]
    inside = [path for path in needed if any(path.startswith(f"{f}/") for f in hidden)]
    if way == "rules":
        keeper.close_folders(hidden, inside)
    elif way == "view":
        keeper.hide_by_view(*make_view(hidden, inside))


def present(folders: Iterable[Path]) -> list[Path]:
    """Returns the folders that exist or can be made: one that appears later is not hidden."""
    found = []
    for folder in folders:
        if os.geteuid() != 0:
            with suppress(OSError):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.is_dir():
            found.append(folder)
    return found


def _outermost(folders: Iterable[Path]) -> list[str]:
    """Returns the folders that are in no other of these."""
    found: list[str] = []
    for path in sorted({os.path.realpath(folder) for folder in folders}):
        if not any(path.startswith(f"{other}/") for other in found):
            found.append(path)
    return found


def _can_write_above(path: str) -> bool:
    """Returns whether this user can make files in a folder above."""
    return any(os.access(parent, os.W_OK, effective_ids=True) for parent in landlock.parents(path))

"""The modes without walls of their own: `process` and `user`.

In `process`, a program runs as the worker's user, in a process group of its own. In `user`, the
programs of each attempt run under a uid that nothing else has.
"""

from msgspec.structs import replace

from windlass.domain.matching.isolation import Isolation
from windlass.worker.isolation.confinement import Confinement, Program, Wish
from windlass.worker.isolation.uids import Uids
from windlass.worker.keeper.kept_process import RunAs


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

    async def clear_leftovers(self) -> None:
        """Does nothing: the keeper and its guard end processes."""


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
        """Returns why not; only root, or a user with subordinate uids, can start programs as
        others.
        """
        return self._lacking or self._uids.check()

    def enter(self, wish: Wish) -> Confinement:
        """Takes a uid for the attempt."""
        return OwnUser(self._uids, str(wish.scratch))

    async def clear_leftovers(self) -> None:
        """Does nothing: locks end with the worker, and its processes were killed."""


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
        return replace(program, env=env, run_as=RunAs(user=self._uid, apart=True))

    async def leave(self) -> None:
        """Gives the uid back; the keeper has killed its processes."""
        self._uids.give_back(self._uid)


def home_of(uid: int, home: str) -> dict[str, str]:
    """Returns the variables that describe a user without an account."""
    return {"HOME": home, "USER": str(uid), "LOGNAME": str(uid)}

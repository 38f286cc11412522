"""The mode `process`: a program runs as the worker's user, in a process group of its own."""

from windlass.domain.matching.isolation import Isolation
from windlass.worker.isolation.mode import Confinement, Program, Wish


class ProcessMode:
    """Implements `IsolationMode`."""

    name: Isolation = "process"

    async def why_not(self) -> str | None:
        """Every machine can do it."""
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

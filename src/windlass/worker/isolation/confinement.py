"""The interface between attempts and the modes of isolation.

An attempt enters a mode once, before its first program: that gives it a `Confinement`. Each of its
programs goes through `wrap`, and the keeper starts what that returns. When the attempt has ended
and none of its processes is left, `leave` is called. A `ConfinedProcess` explains how it ended, for
example a container's process. What a killed agent leaves, the keeper, its guard or the next agent
ends: their processes, and containers by their folders.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from windlass.domain.matching.isolation import Isolation, Network, Pull
from windlass.domain.values.errors import WindlassError
from windlass.worker.keeper.kept_process import Ended, KeptProcess, Program


class ConfinementFailed(WindlassError):
    """A mode could not start a program; `failure` is the class of that failure."""

    code = "confinement_failed"

    def __init__(self, failure: str, message: str) -> None:
        super().__init__(message)
        self.failure = failure


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt requests from a mode; `socket` is how its programs submit jobs.

    `scratch` is its folder, which may not exist yet. `devices` are the indices of its GPUs.
    `secrets` are the names of variables whose values nobody else may read, and `credentials` are
    for the registry of its image. `note` writes a line to the job's log.
    """

    job: int
    attempt: int
    scratch: Path
    socket: Path | None = None
    network: Network | None = None
    image: str | None = None
    pull: Pull = "missing"
    devices: tuple[str, ...] = ()
    secrets: frozenset[str] = frozenset()
    credentials: str | None = None
    note: Callable[[str], object] = str


class Confinement(Protocol):
    """The environment in which the programs of one attempt run."""

    async def wrap(self, program: Program) -> Program:
        """Returns what the keeper starts instead of this program; raises `WindlassError`."""

    async def leave(self) -> None:
        """Removes what was made for the attempt; its processes have ended or are killed."""


@runtime_checkable
class Settles(Protocol):
    """A confinement that has work to do when one of its programs has ended."""

    async def settle(self, program: Program, ended: Ended, output: bytes) -> Ended:
        """Returns how the job's own program ended; raises `ConfinementFailed` if it never ran.

        `program` is what `wrap` returned, `output` the end of its output, if it printed little.
        When this returns, the program has ended for good.
        """


class IsolationMode(Protocol):
    """One mode on this machine."""

    @property
    def name(self) -> Isolation: ...

    async def why_not(self) -> str | None:
        """Returns why this machine does not support it, in words for people; None if it does."""

    def enter(self, wish: Wish) -> Confinement:
        """Prepares the confinement of one attempt."""


TAIL_BYTES = 4_096


class Tail:
    """Passes output on, and remembers its last bytes."""

    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        self._on_output = on_output
        self.data = b""

    def __call__(self, data: bytes) -> None:
        self.data = (self.data + data)[-TAIL_BYTES:]
        self._on_output(data)


class ConfinedProcess:
    """Implements `Process`: its end is what its confinement makes of it, computed once."""

    def __init__(
        self, process: KeptProcess, program: Program, settles: Settles, tail: Tail
    ) -> None:
        self._process = process
        self._program = program
        self._settles = settles
        self._tail = tail
        self._settling: asyncio.Task[Ended] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdin(self) -> asyncio.StreamWriter | None:
        return self._process.stdin

    @property
    def stdout(self) -> asyncio.StreamReader | None:
        return self._process.stdout

    async def wait(self) -> Ended:
        """Waits for its end and returns how the job's own program ended."""
        await self._process.wait()
        if self._settling is None:
            self._settling = asyncio.get_running_loop().create_task(self._settle())
        return await asyncio.shield(self._settling)

    async def stop(self) -> Ended:
        """Sends SIGTERM, SIGKILL after the grace; returns how it ended."""
        self._process.ask_to_stop()
        return await self.wait()

    async def _settle(self) -> Ended:
        ended = await self._process.wait()
        settled = await self._settles.settle(self._program, ended, self._tail.data)
        self._process.ended = settled
        return settled

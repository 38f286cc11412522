"""The interface between attempts and the modes of isolation.

An attempt enters a mode once, before its first program: that gives it a `Confinement`. Each of
its programs goes through `wrap`, and the keeper starts what that returns. When the attempt has
ended and none of its processes is left, `leave` is called. `clear_leftovers` runs when an agent
starts, for what an agent left that was killed.
"""

from pathlib import Path
from typing import Protocol

import msgspec

from windlass.domain.matching.isolation import Isolation, Network, Pull
from windlass.ports.executor import Limits
from windlass.worker.keeper.kept_process import AS_WORKER, RunAs


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program, as the keeper starts it.

    It sees `env` beside the environment of all jobs; with `whole`, nothing else. With `make`
    the keeper makes the folder `cwd`.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    whole: bool = False
    cwd: str
    make: bool = False
    limits: Limits | None = None
    run_as: RunAs = AS_WORKER


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt asks of a mode; `socket` is how its programs submit jobs.

    `scratch` is its folder, which may not exist yet. `devices` are the indices of its GPUs.
    """

    job: int
    attempt: int
    scratch: Path
    socket: Path | None = None
    network: Network = "host"
    image: str | None = None
    pull: Pull = "missing"
    limits: Limits | None = None
    devices: tuple[str, ...] = ()


class Confinement(Protocol):
    """What the programs of one attempt run in."""

    async def wrap(self, program: Program) -> Program:
        """Returns what the keeper starts instead of this program; raises `WindlassError`."""
        ...

    async def leave(self) -> None:
        """Removes what was made for the attempt; its processes have ended or are killed."""
        ...


class IsolationMode(Protocol):
    """One mode on this machine."""

    @property
    def name(self) -> Isolation: ...

    async def why_not(self) -> str | None:
        """Returns why this machine cannot do it, in words for people; None if it can."""
        ...

    def enter(self, wish: Wish) -> Confinement:
        """Prepares the confinement of one attempt."""
        ...

    async def clear_leftovers(self) -> None:
        """Removes what attempts of an agent that was killed have left."""
        ...

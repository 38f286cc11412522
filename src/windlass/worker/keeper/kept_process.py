"""One process group as the agent sees it: whether it has started, and how it ended."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass.ports.executor import Exit, Limits
from windlass.worker.keeper.launch import PLAIN, Start


class SpawnFailed(WindlassError):
    """A program could not be started; `number` is the errno."""

    code = "spawn_failed"

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class Fenced(WindlassError):
    """The keeper starts nothing: no server has answered for too long, or the keeper is gone."""

    code = "fenced"


class Ended(Exit, frozen=True):
    """How a process ended, and what else the agent needs to know."""

    fenced: bool = False
    dirty: bool = False  # its folder is not empty
    peak_bytes: int = 0
    cpu_seconds: float = 0.0


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program, as the keeper starts it.

    It sees `env` besides the environment of all jobs; with `whole`, nothing else. With `make` the
    keeper makes the folder `cwd` if it is missing. `start` says how, except for the limits.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    whole: bool = False
    cwd: str
    make: bool = False
    limits: Limits | None = None
    start: Start = PLAIN


class KeeperLink(Protocol):
    """Carries messages to the keeper; `grace_ms` lies between SIGTERM and SIGKILL."""

    grace_ms: int

    def send(self, message: tuple[Any, ...]) -> None: ...


class KeptProcess:
    """A process group that the keeper started."""

    __slots__ = ("_client", "_limits", "_number", "_waiters", "ended", "failed", "on_output",
                 "on_pipe", "pid", "stdin", "stdout")  # fmt: skip

    def __init__(self, client: KeeperLink, number: int, limits: Limits | None = None) -> None:
        self._client = client
        self._limits = limits
        self._number = number
        self._waiters: list[asyncio.Future[None]] = []
        self.pid = 0
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.ended: Ended | None = None
        self.failed: Exception | None = None
        self.on_output: Callable[[bytes], None] = _ignore
        self.on_pipe: Callable[[int], None] = os.close

    async def wait(self) -> Ended:
        """Waits for its end and returns how it ended."""
        while self.ended is None:
            await self._changed()
        return self.ended

    async def started(self) -> None:
        """Waits until it has started, which may be over by now; raises why it could not."""
        while not self.pid and self.ended is None:
            await self._changed()

    @property
    def over(self) -> bool:
        """Returns whether it has ended or never started."""
        return self.ended is not None or self.failed is not None

    async def gone(self) -> None:
        """Waits until it has ended or could not be started."""
        with contextlib.suppress(WindlassError):
            await self.wait()

    async def stop(self, grace_ms: int | None = None) -> Ended:
        """Sends SIGTERM to the whole group, SIGKILL after the grace; returns how it ended."""
        self.ask_to_stop(grace_ms)
        return await self.wait()

    def ask_to_stop(self, grace_ms: int | None = None) -> None:
        """Does the same without waiting for the end."""
        if self.ended is None:
            grace = self._client.grace_ms if grace_ms is None else grace_ms
            self._client.send(("stop", self._number, grace / 1000))

    async def _changed(self) -> None:
        """Waits for the next change: it starts, fails to start, or ends."""
        if self.failed is not None:
            raise self.failed
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def tell(self, error: Exception | None = None) -> None:
        """Wakes everyone who waits for a change."""
        self.failed = error
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    def begin(self, pid: int) -> None:
        """Records its start, as the keeper reports it."""
        self.pid = pid
        self.tell()

    def end(self, code: int, over: str, fenced: bool, dirty: bool, peak: int, cpu: float) -> None:
        """Records its end, as the keeper reports it; `over` is the limit that it has passed."""
        exited, killed = (code, None) if code >= 0 else (None, -code)
        starved = over == "memory"
        self.ended = Ended(exited, killed, starved, over, self._limits, fenced, dirty, peak, cpu)
        self.tell()


def _ignore(data: bytes) -> None:
    """Drops output that nobody wants."""

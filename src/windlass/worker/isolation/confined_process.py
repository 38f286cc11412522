"""A program of a job in a confinement that says how it ended, such as a container."""

import asyncio
from collections.abc import Callable

from windlass.worker.isolation.mode import Program, Settles
from windlass.worker.keeper.kept_process import Ended, KeptProcess

TAIL_BYTES = 4_096


class Tail:
    """Passes output on and remembers the end of it, while there is little of it."""

    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        self._on_output = on_output
        self.data = b""

    def __call__(self, data: bytes) -> None:
        self.data = (self.data + data)[-TAIL_BYTES:]
        self._on_output(data)


class ConfinedProcess:
    """Implements `Process`: it has ended when its confinement says so, however often asked."""

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

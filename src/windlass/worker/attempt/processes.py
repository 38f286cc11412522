"""The processes of one attempt: started through the keeper, limited, stopped together."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from windlass.domain.job.forms import JobLimits, milliseconds
from windlass.ports.executor import Limits, Process
from windlass.worker.attempt.context import Keeper
from windlass.worker.isolation.confinement import ConfinedProcess, Confinement, Settles, Tail
from windlass.worker.keeper.kept_process import Ended, KeptProcess, Program


def combined(given: Limits | None, own: JobLimits | None, most: JobLimits | None) -> Limits | None:
    """Returns the limits of a program; `given` are those that its executor asks for."""
    if own is None and most is None:
        return given
    parts = [part for part in (given, _limits(own), _limits(most)) if part is not None]
    return Limits(
        _least(part.memory_bytes for part in parts),
        _least(part.cpu_seconds for part in parts),
        () if given is None else given.cpus,
        _least(part.processes for part in parts),
        _least(part.open_files for part in parts),
        _least(part.disk_bytes for part in parts),
    )


def _limits(limits: JobLimits | None) -> Limits | None:
    if limits is None:
        return None
    cpu_ms = milliseconds(limits.cpu_time) or 0
    return Limits(
        int(limits.memory or 0),
        -(-cpu_ms // 1000),
        (),
        limits.processes or 0,
        limits.open_files or 0,
        int(limits.disk or 0),
    )


def _least(amounts: Iterable[int]) -> int:
    return min((amount for amount in amounts if amount), default=0)


Wrapping = Callable[[Coroutine[Any, Any, Program]], Awaitable[Program]]


async def _at_once(wrapping: Coroutine[Any, Any, Program]) -> Program:
    return await wrapping


class Processes:
    """Hands their output to `on_output`, or to `on_pipe` if there is much of it.

    They run in `confinement`, if there is one; `waiting` runs while it prepares them.
    """

    __slots__ = (
        "_confinement", "_job", "_keeper", "_on_output", "_on_pipe", "_started", "_waiting",
    )  # fmt: skip

    def __init__(
        self,
        keeper: Keeper,
        job: int,
        on_output: Callable[[bytes], None],
        on_pipe: Callable[[int], None],
        confinement: Confinement | None = None,
        waiting: Wrapping = _at_once,
    ) -> None:
        self._keeper = keeper
        self._waiting = waiting
        self._confinement = confinement
        self._job = job
        self._on_output = on_output
        self._on_pipe = on_pipe
        self._started: list[KeptProcess] = []

    async def spawn(self, program: Program, *, stdin: bytes | int | None, capture: bool) -> Process:
        """Starts a process in its own group."""
        if self._confinement is not None:
            program = await self._waiting(self._confinement.wrap(program))
        listen, stdout = os.pipe() if capture else (-1, None)
        process = self._keeper.spawn(
            program,
            stdin=_memory_file(stdin) if isinstance(stdin, bytes) else stdin,
            stdout=stdout,
            tag=f"WINDLASS_JOB={self._job}".encode(),
        )
        tail = Tail(self._on_output) if isinstance(self._confinement, Settles) else None
        process.on_output = self._on_output if tail is None else tail
        process.on_pipe = self._on_pipe
        self._started.append(process)
        if capture:
            process.stdout = await _reader(listen)
        await process.started()
        if tail is None or not isinstance(self._confinement, Settles):
            return process
        return ConfinedProcess(process, program, self._confinement, tail)

    def stop(self, grace_ms: int) -> None:
        """Sends SIGTERM to all groups and SIGKILL after the grace; with 0, only SIGKILL."""
        for process in self._started:
            process.ask_to_stop(grace_ms)

    @property
    def over(self) -> bool:
        """Returns whether all of them have ended."""
        return all(process.over for process in self._started)

    async def wait_over(self) -> None:
        """Waits until all of them have ended."""
        for process in self._started:
            await process.gone()

    @property
    def fenced(self) -> bool:
        """Returns whether the keeper ended one because no server answered."""
        return any(end.fenced for end in self._ends())

    @property
    def peak_memory(self) -> int:
        """Returns the maximum memory one of them used, in bytes; 0 if unknown."""
        return max((end.peak_bytes for end in self._ends()), default=0)

    @property
    def left_files(self) -> bool:
        """Returns whether they left files behind, or may still do so."""
        return any(p.ended is None or p.ended.dirty for p in self._started)

    def _ends(self) -> list[Ended]:
        return [process.ended for process in self._started if process.ended is not None]


def _memory_file(data: bytes) -> int:
    """Returns an in-memory file that holds `data`, to be read from its start."""
    fd = os.memfd_create("stdin")
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


async def _reader(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    file = os.fdopen(fd, "rb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    return reader

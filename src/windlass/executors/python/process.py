"""A process for Python functions, seen from its executor: how it starts, communicates and ends."""

import asyncio
import mmap
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

from windlass.domain.values.errors import WindlassError
from windlass.executors.python.code_store import CodeStore
from windlass.executors.python.messages import (
    CURRENT,
    HELD,
    HERE,
    KEPT_CODE,
    PAGE_BYTES,
    STOPPED,
    Frames,
    Report,
    decode_reports,
    frame,
)
from windlass.executors.python.stacks import NUMBER, decode
from windlass.messages.files import StackThread
from windlass.ports.executor import Exit, Limits, Process

READ: Final = 65_536
START_TRIES: Final = 3
Mode = Literal["queue", "loop"]


class Spawn(Protocol):
    """Starts a process in its own group, through the keeper, for no job in particular."""

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        limits: Limits | None,
        stdin: int,
    ) -> Process: ...


class Owner(Protocol):
    """The receiver of a process's reports."""

    def heard(self, child: "Child", reports: list[Report], /) -> None: ...

    def wrote(self, child: "Child", seq: int, data: bytes, /) -> None: ...

    def ended(self, child: "Child", /) -> None: ...


class ProcessLauncher:
    """Starts the processes of an executor; they share a queue."""

    def __init__(
        self,
        spawn: Spawn,
        *,
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        preload: Sequence[str] = (),
        code: CodeStore | None = None,
    ) -> None:
        self._spawn = spawn
        self._limits = limits
        self._env = dict(env or {})
        self._preload = tuple(preload)
        self._code = code
        # Packets: whichever process is idle takes the next call, and none waits behind a slow one.
        # We hold the reading end too, to take back calls that have not begun.
        self.calls, self.taken = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.calls.setblocking(False)

    async def start(self, mode: Mode, owner: Owner) -> "Child":
        """Starts a process, which may take more than one try; raises `NotStarted`."""
        why = ""
        for _ in range(START_TRIES):
            try:
                return await self._start(mode, owner)
            except (WindlassError, OSError) as error:
                why = str(error)
        raise NotStarted(why)

    async def _start(self, mode: Mode, owner: Owner) -> "Child":
        argv = [
            sys.executable, "-m", "windlass.executors.python.child", mode,
            "" if self._code is None else KEPT_CODE, *self._preload,
        ]  # fmt: skip
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        if self._code is not None:
            with self._code.connect() as asking:
                socket.send_fds(ours, [b"?"], [asking.fileno()])
        try:
            process = await self._spawn(
                argv, env=self._env, cwd=Path.cwd(), limits=self._limits, stdin=theirs.detach()
            )
            life = Life(process)
            if await asyncio.get_running_loop().sock_recv(ours, len(HERE)) != HERE:
                await asyncio.wait((life.ended,))
                raise NotStarted(f"a process for Python functions {exit_text(life.exit)}")
        except BaseException:
            ours.close()
            raise
        return await Child.greet(life, ours, self.taken, owner)

    def close(self) -> None:
        """Releases everything; the processes have ended."""
        for end in (self.calls, self.taken):
            end.close()


class NotStarted(WindlassError):
    """A process ended before it took calls."""

    code = "not_started"


class Life:
    """A process from its start to its end, with one wait for the end at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._stopped = False
        self.ended = self._wait_for(process.wait())

    @property
    def exit(self) -> Exit:
        """Waits for its end. Without a keeper to report it, counts it as killed."""
        if self.ended.cancelled() or self.ended.exception() is not None:
            return Exit(None, signal.SIGKILL)
        return self.ended.result()

    async def stop(self) -> Exit:
        """Sends SIGTERM to its group, SIGKILL after the grace, and returns the exit."""
        if not self._stopped and not self.ended.done():
            self._stopped = True
            self.ended.cancel()
            self.ended = self._wait_for(self._process.stop())
        await asyncio.wait((self.ended,))
        return self.exit

    def _wait_for(self, end: Coroutine[Any, Any, Exit]) -> asyncio.Task[Exit]:
        task = asyncio.get_running_loop().create_task(end)
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return task


class SideChannel:
    """The agent's end of the connection over which it asks a process for stacks of functions."""

    def __init__(self, side: socket.socket) -> None:
        side.setblocking(False)
        self._side = side
        self._asked = 0
        self._data = bytearray()
        self._turn = asyncio.Lock()

    async def ask(self, seq: int) -> list[StackThread] | None:
        """Returns the stack of this call; None if it does not run there."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            self._asked += 1
            number = self._asked.to_bytes(NUMBER, "little")
            await loop.sock_sendall(self._side, number + seq.to_bytes(NUMBER, "little"))
            while True:  # Skips an answer that came too late for its caller.
                answered, body = await self._next()
                if answered == number:
                    found: list[StackThread] | None = decode(body)
                    return found

    async def _next(self) -> tuple[bytes, bytes]:
        """Returns the next answer; keeps what has arrived if nobody waits any more."""
        loop, data = asyncio.get_running_loop(), self._data
        while True:
            end = 2 * NUMBER + int.from_bytes(data[NUMBER : 2 * NUMBER], "little")
            if len(data) >= max(end, 2 * NUMBER):
                answer = bytes(data[:NUMBER]), bytes(data[2 * NUMBER : end])
                del data[:end]
                return answer
            part = await loop.sock_recv(self._side, READ)
            if not part:
                raise ConnectionError("the process has ended")
            data += part

    def close(self) -> None:
        """Ends the thread at the other end."""
        self._side.close()


def side_channel() -> tuple[SideChannel, socket.socket]:
    """Returns both ends of a connection; the second is for the process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return SideChannel(ours), theirs


class Child(asyncio.Protocol):
    """A process that takes calls."""

    def __init__(self, life: Life, page: Any, output: int, owner: Owner, side: SideChannel) -> None:
        self.life = life
        self.side = side
        self._owner = owner
        self._page = page
        self._output = output
        self._frames = Frames()
        self._orders: list[Any] = []
        self._transport: asyncio.Transport | None = None
        self._holds = 0  # logs that must be sent before more reports are read
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def greet(
        cls, life: Life, connection: socket.socket, queue: socket.socket, owner: Owner
    ) -> "Child":
        """Gives a connected process its queue, its page and the pipe for its output."""
        with tempfile.TemporaryFile() as file:
            file.truncate(PAGE_BYTES)
            page = memoryview(mmap.mmap(file.fileno(), PAGE_BYTES)).cast("Q")
            listen, write = os.pipe()
            os.set_blocking(listen, False)
            side, theirs = side_channel()
            fds = [queue.fileno(), file.fileno(), write, theirs.fileno()]
            socket.send_fds(connection, [b"!"], fds)
            os.close(write)
            theirs.close()
        child = cls(life, page, listen, owner, side)
        loop = asyncio.get_running_loop()
        loop.add_reader(listen, child.read_output)
        await loop.create_unix_connection(lambda: child, sock=connection)
        return child

    @property
    def current(self) -> int:
        """Returns the call it runs; 0 when idle. For processes in `queue` mode."""
        return int(self._page[CURRENT])

    def mark_stopped(self, seq: int) -> bool:
        """Tells it to give up a call; returns False if it has finished that call."""
        self._page[STOPPED] = seq
        os.getppid()  # a system call between the write and the read keeps their order
        return self.current == seq

    def send(self, order: object) -> None:
        """Sends a message, together with all others of this turn of the loop."""
        if not self._orders:
            self._loop.call_soon(self._flush)
        self._orders.append(order)

    def _flush(self) -> None:
        orders, self._orders = self._orders, []
        if self._transport is not None:
            self._transport.write(frame(orders))

    def read_output(self) -> bool:
        """Passes on some of its output; False if there was none."""
        seq = self.current  # before the read: once all is read, it may go on to the next call
        try:
            data = os.read(self._output, READ)
        except BlockingIOError:
            return False
        if not data:
            self._close_output()
            return False
        self._owner.wrote(self, seq, data)
        return True

    def hold_output(self) -> None:
        """Leaves its output unread, so that it has to wait before it writes more."""
        if self._output >= 0 and not self._page[HELD]:
            self._page[HELD] = 1
            self._loop.remove_reader(self._output)

    def resume_output(self) -> None:
        """Reads on."""
        if self._output >= 0 and self._page[HELD]:
            self._page[HELD] = 0
            self._loop.add_reader(self._output, self.read_output)

    def hold_reports(self) -> None:
        """Reads none of its reports until as many `resume_reports` have come."""
        self._holds += 1
        if self._holds == 1 and self._transport is not None:
            self._transport.pause_reading()

    def resume_reports(self) -> None:
        self._holds -= 1
        if self._holds == 0 and self._transport is not None:
            self._transport.resume_reading()

    def _close_output(self) -> None:
        if self._output >= 0:
            self._loop.remove_reader(self._output)
            os.close(self._output)
            self._output = -1

    def release(self) -> None:
        """Reads the rest of the output of an ended process and closes its pipes."""
        while self._output >= 0 and self.read_output():
            pass
        self._close_output()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:

        self._transport = cast(asyncio.Transport, transport)  # uvloop has its own types

    def data_received(self, data: bytes) -> None:
        for body in self._frames.feed(data):
            self._owner.heard(self, decode_reports(body))

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self.side.close()
        self._owner.ended(self)


def exit_text(end: Exit) -> str:
    """Returns how a process ended, as the end of a sentence."""
    if end.out_of_memory:
        return "ran out of memory"
    if end.signal is not None:
        return f"was killed by signal {end.signal}"
    return f"exited with code {end.code}"

"""The process for async functions: many at once, in one loop."""

import asyncio
import io
import select
import socket
import sys
import threading
import time
from typing import Final

import msgspec

from windlass.domain.values.errors import Conflict
from windlass.executors.python.functions import Functions, Unfit, ended, enter_call_trace, raised
from windlass.executors.python.messages import (
    LOOK_OUT_S,
    NAP_S,
    Alive,
    Answer,
    Ask,
    Call,
    Expect,
    Frames,
    Log,
    Progress,
    Ready,
    Report,
    Stop,
    decode_orders,
    frame,
)
from windlass.executors.python.stacks import answer_stacks, of_task
from windlass.messages.files import StackThread
from windlass.tasks.current import JOBS, Canceled, Current, enter, find_current
from windlass.tasks.steps import refuse_caught

FLUSH_AT: Final = 65_536  # characters that a job may write before they are sent
OUTBOX_LIMIT: Final = 1_048_576  # bytes that may wait for the agent before writers block
PIECE: Final = 262_144


def serve(connection: socket.socket, side: socket.socket) -> None:
    """Runs the calls that come over the connection until it is closed."""
    loop = _new_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_serve(connection, side))


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(connection: socket.socket, side: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    connection.setblocking(False)
    server = Server(loop, Outbox(loop, connection.dup()))
    answer_stacks(side, server.stacks_of)
    await loop.create_unix_connection(lambda: server, sock=connection)
    await server.closed


class Server(asyncio.Protocol):
    """Runs async functions, each in a task of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, outbox: "Outbox") -> None:
        self.closed = loop.create_future()
        self._loop = loop
        self._thread = threading.get_ident()
        self._frames = Frames()
        self._functions = Functions()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._stopped: set[int] = set()
        self._reports: list[Report] = []
        self._written: dict[int, list[str]] = {}
        self._asked = 0
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._size = 0  # characters of what was written
        self._flushing = False
        self._outbox = outbox
        self._lock = threading.RLock()  # functions may write from threads of their own

    def connection_made(self, _transport: asyncio.BaseTransport) -> None:
        sys.stdout = Output(self, 1)
        sys.stderr = Output(self, 2)
        self._say(Ready())

    def connection_lost(self, _exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        tasks = self._tasks
        for body in self._frames.feed(data):
            for order in decode_orders(body):
                if isinstance(order, Call):
                    tasks[order.seq] = self._loop.create_task(self._run(order))
                elif isinstance(order, Expect):
                    self._loop.call_soon(self._look_out, time.monotonic() + LOOK_OUT_S)
                elif isinstance(order, Answer):
                    waiting = self._answers.get(order.number)
                    if waiting is not None and not waiting.done():
                        waiting.set_result(order)
                elif isinstance(order, Stop) and (task := tasks.get(order.seq)) is not None:
                    self._stopped.add(order.seq)
                    # Not at once: a task that has not begun would end without a report.
                    self._loop.call_soon(task.cancel)

    def stacks_of(self, seq: int) -> list[StackThread] | None:
        """Returns the stack of the call; called from another thread, as the loop may be blocked."""
        task = self._tasks.get(seq)
        if task is None:
            return None
        found = of_task(task, self._loop, self._thread)
        return [found]

    def _look_out(self, until: float) -> None:
        """Busy-waits for a moment, because a call is expected soon."""
        if not self._tasks and time.monotonic() < until:
            time.sleep(NAP_S)  # The loop's own timers are coarser, and nothing else runs.
            self._loop.call_soon(self._look_out, until)

    async def _run(self, call: Call) -> None:
        seq = call.seq
        job = Current(call.job, call.attempt, call.workflow, seq, self, call.secrets)
        enter(job, alone=False)
        if call.trace is not None:
            enter_call_trace(call.trace, alone=False)
        try:
            found = self._functions.find(call.function, call.version)
            if not found.is_async:
                raise Unfit(f"expected {call.function} to be an async function, as it was before")
            args, kwargs = found.arguments(call)
            if seq in self._stopped:
                raise Canceled
            value = await found.function(*args, **kwargs)
            refuse_caught(job)
            report: Report = ended(call, found, value)
        except asyncio.CancelledError as error:
            report = raised(call, Canceled() if seq in self._stopped else error)
        except BaseException as error:
            report = raised(call, error)
        job.remove_folders()
        del self._tasks[seq]
        self._stopped.discard(seq)
        self._say(report)

    def _say(self, report: Report) -> None:
        self._reports.append(report)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        with self._lock:
            written, self._written = self._written, {}
            reports, self._reports = self._reports, []
            self._size = 0
            logs: list[Report] = [
                Log(seq, "".join(texts).encode("utf-8", "backslashreplace"))
                for seq, texts in written.items()
            ]
            if logs or reports:
                self._outbox.send(frame(logs + reports))

    # Called by a running job

    def progress(self, seq: int, value: object) -> None:
        self._say(Progress(seq, msgspec.json.encode(value)))

    def alive(self, seq: int) -> None:
        self._loop.call_soon_threadsafe(self._say, Alive(seq))

    def log(self, seq: int, text: str) -> None:
        with self._lock:
            self._written.setdefault(seq, []).append(text)
            self._size += len(text)
            if self._size >= FLUSH_AT:
                self._flush()
                return
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon_threadsafe(self._flush)

    def canceled(self, seq: int) -> bool:
        return seq in self._stopped

    def ask(self, seq: int, body: bytes, what: str = JOBS) -> Answer:
        """Makes a thread wait for an answer; the loop itself must not."""
        if threading.current_thread() is threading.main_thread():
            raise Conflict("async", "await the async form of this in async functions")
        asking = asyncio.run_coroutine_threadsafe(self.ask_async(seq, body, what), self._loop)
        return asking.result()

    async def ask_async(self, seq: int, body: bytes, what: str = JOBS) -> Answer:
        self._asked += 1
        number = self._asked
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._answers[number] = answer
        self._say(Ask(seq, number, body, what))
        try:
            return await answer
        finally:
            del self._answers[number]


class Outbox:
    """Messages to the agent. If it does not read them, writers block: memory stays bounded."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self._loop = loop
        self._sock = sock
        self._waiting = bytearray()
        self._watching = False
        self._lock = threading.Lock()

    def send(self, data: bytes) -> None:
        """Sends this, at once or as soon as possible; blocks while too much waits."""
        with self._lock:
            self._waiting += data
            self._push()
            while len(self._waiting) > OUTBOX_LIMIT:
                select.select((), (self._sock,), ())
                self._push()
            watch = bool(self._waiting) and not self._watching
            self._watching = self._watching or watch
        if watch:
            self._loop.call_soon_threadsafe(self._loop.add_writer, self._sock, self._go_on)

    def _go_on(self) -> None:
        with self._lock:
            self._push()
            if not self._waiting:
                self._watching = False
                self._loop.remove_writer(self._sock)

    def _push(self) -> None:
        try:
            while self._waiting:
                sent = self._sock.send(bytes(self._waiting[:PIECE]))
                del self._waiting[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._waiting.clear()  # The agent is gone, and this process soon will be.


class Output(io.TextIOBase):
    """Standard output that goes to the log of the job whose code writes it."""

    encoding = "utf-8"

    def __init__(self, server: Server, number: int) -> None:
        super().__init__()
        self._server = server
        self._number = number

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, text: str) -> int:
        job = find_current()
        if job is not None:
            self._server.log(job.seq, text)
        return len(text)

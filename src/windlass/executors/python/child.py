"""A process that runs Python functions: `python -m windlass.executors.python.child`.

Its standard input is a connection to its executor, which hands it the queue of calls, its page and
a pipe for its output. So it needs no file of the agent's. Then it runs plain functions one by one,
taken from the queue that it shares with the other processes, or async ones, many at once, as they
come over the connection.

A job that is isolated, or has limits, shares its process with no other: `LoneServer`.
"""

import array
import fcntl
import importlib
import mmap
import os
import signal
import socket
import sys
import termios
import threading
import time
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from windlass.executors.python.functions import (
    Functions,
    ended,
    enter_call_trace,
    leave_call_trace,
    raised,
)
from windlass.executors.python.messages import (
    ALONE,
    CURRENT,
    HELD,
    HERE,
    KEPT_CODE,
    LOOK_OUT_S,
    NAP_S,
    PACKET_LIMIT,
    PAGE_BYTES,
    STOPPED,
    Alive,
    Answer,
    Ask,
    Call,
    Done,
    Expect,
    Failed,
    Frames,
    Last,
    Progress,
    Ready,
    Redirect,
    decode_orders,
    decode_packet,
    frame,
)
from windlass.executors.python.snapshot import use_snapshot
from windlass.executors.python.stacks import answer_stacks, of_threads
from windlass.messages.files import StackThread
from windlass.tasks.current import JOBS, Canceled, Current, enter, make_folders_in
from windlass.tasks.steps import refuse_caught

JOB_VARIABLES: Final = ("WINDLASS_JOB", "WINDLASS_ATTEMPT", "WINDLASS_WORKFLOW")
FLUSH_LIMIT_S: Final = 5.0  # how long a job's end waits for its output to be read
FLUSH_PAUSE_S: Final = 0.0005
PAGE_WORDS: Final = 1 + max(CURRENT, STOPPED, HELD)
_EMPTY: Final = array.array("i", [0]).tobytes()


def main() -> None:
    """Serves the calls of the executor until the connection closes."""
    if sys.argv[1:] == [ALONE]:
        serve_alone()
        return
    mode, code, *modules = sys.argv[1:]
    _yield_to_the_agent()
    make_folders_in(os.getcwd())
    connection = take_connection()
    if code == KEPT_CODE:
        _, (asking,), _, _ = socket.recv_fds(connection, 1, 1)
        use_snapshot(socket.socket(fileno=asking))
    for module in modules:
        importlib.import_module(module)
    connection.sendall(HERE)
    _, fds, _, _ = socket.recv_fds(connection, 1, 4)
    queue = socket.socket(fileno=fds[0])
    page = memoryview(mmap.mmap(fds[1], PAGE_BYTES)).cast("Q")
    for number in (1, 2):
        os.dup2(fds[2], number)
    for fd in fds:
        os.set_inheritable(fd, False)
    write_lines_out()
    side = socket.socket(fileno=fds[3])
    if mode == "loop":
        from windlass.executors.python.child_loop import serve

        queue.close()
        serve(connection, side)
    else:
        server = Server(queue, connection, page, fds[2])
        answer_stacks(side, server.stacks_of)
        server.serve()


def take_connection() -> socket.socket:
    """Takes over the connection to the executor: it comes as the standard input."""
    connection = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return connection


def _yield_to_the_agent() -> None:
    """Lowers the priority of this process on wake-up, so that waking it does not delay the agent.

    Otherwise, with few processors, the agent loses its own for every single call that it sends. The
    CPU share of this process, and of the programs that it starts, stays the same.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except (AttributeError, OSError):
        pass  # Not Linux, or not allowed: only slower.


def write_lines_out() -> None:
    """Flushes output after each line, wherever it goes."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


class Server:
    """Runs plain functions, one at a time, on the main thread, so that signals reach them."""

    alone = False  # whether the process is for one call only

    def __init__(
        self, queue: socket.socket, connection: socket.socket, page: Any, output: int
    ) -> None:
        self._queue = queue
        self._connection = connection
        self._page = page
        self._output = output
        self._functions = Functions()
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._asked = 0
        self._frames = Frames()
        self._pid = os.getpid()
        self._thread = threading.get_ident()
        self._waiting = self._working = self._ending = False
        self._workflow: int | None = None
        self._shadowed: dict[str, str | None] = {}  # variables that secrets replaced
        self._entered: Current | None = None  # the last job

    def serve(self) -> None:
        """Takes calls until the queue is closed or this process is told to end."""
        self.listen()
        self._send(Ready())
        page = self._page
        while not self._ending:
            call = self._take()
            if call is None:
                return
            page[CURRENT] = call.seq
            report = self._run(call)
            if os.getpid() != self._pid:
                os._exit(0)  # A fork that returned from its job's function must not continue here.
            if self._entered is not None:
                self._entered.remove_folders()
            self._flush()
            if call.variables and not isinstance(report, Redirect):
                # What it opened may still use an index: only its exit frees that for others.
                self._send(Last(call.seq, report))
                return
            page[CURRENT] = 0
            self._send(report)
            # Read after the report was sent: the executor first marks and then checks, so a process
            # that has gone on to the next call is never stopped for the last one.
            if page[STOPPED] == call.seq:
                return

    def stacks_of(self, seq: int) -> list[StackThread] | None:
        """Returns the stack of the call, if it is running; called from another thread."""
        if self._page[CURRENT] != seq:
            return None
        found = of_threads(self._thread)
        return found if self._page[CURRENT] == seq else None

    def listen(self) -> None:
        """Installs signal handlers."""
        signal.signal(signal.SIGTERM, self._terminate)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _take(self) -> Call | None:
        self._waiting = True
        data, fds, _, _ = socket.recv_fds(self._queue, PACKET_LIMIT, 1)
        while data and isinstance(order := decode_packet(data), Expect):
            data, fds = self._look_out()
        self._waiting = False
        if not data:
            return None
        if isinstance(order, Call):
            return order
        with open(fds[0], "rb") as file:
            file.seek(0)
            call = decode_packet(file.read())
        assert isinstance(call, Call)
        return call

    def _look_out(self) -> tuple[bytes, list[int]]:
        """Returns the next packet; polls briefly, since one is expected soon."""
        until = time.monotonic() + LOOK_OUT_S
        while time.monotonic() < until:
            try:
                return socket.recv_fds(self._queue, PACKET_LIMIT, 1, socket.MSG_DONTWAIT)[:2]
            except BlockingIOError:
                time.sleep(NAP_S)
        return socket.recv_fds(self._queue, PACKET_LIMIT, 1)[:2]

    def _run(self, call: Call) -> Done | Failed | Redirect:
        try:
            found = self._functions.find(call.function, call.version)
            if call.confined and not self.alone and found.task.codec.may_return_files:
                return Redirect(call.seq, alone=True)
            if found.is_async and not (call.variables or self.alone):
                return Redirect(call.seq)
            job = self._enter(call)
            args, kwargs = found.arguments(call)
            self._working = True
            if self._ending:
                raise Canceled
            value: Any = found.function(*args, **kwargs)
            if found.is_async:
                value = self.run_async(value)
            self._working = False
            refuse_caught(job)
        except BaseException as error:
            self._working = False
            return raised(call, error)
        finally:
            enter(None, alone=True)
            if call.trace is not None:
                leave_call_trace()
            if self._shadowed:
                self._forget_secrets()
        return ended(call, found, value)

    def run_async(self, call: Coroutine[Any, Any, object]) -> object:
        """Runs an async function that has a process of its own."""
        import asyncio  # few processes need this import

        return asyncio.run(call)

    def _enter(self, call: Call) -> Current:
        job = Current(call.job, call.attempt, call.workflow, call.seq, self, call.secrets)
        self._entered = job
        enter(job, alone=True)
        if call.trace is not None:
            enter_call_trace(call.trace, alone=True)
        if call.variables:
            os.environ.update(call.variables)
        if call.cpus:
            os.sched_setaffinity(0, call.cpus)
        if call.secrets:
            self._shadowed = {name: os.environ.get(name) for name in call.secrets}
            os.environ.update(call.secrets)
        os.environ["WINDLASS_JOB"] = str(call.job)
        os.environ["WINDLASS_ATTEMPT"] = str(call.attempt)
        if call.workflow != self._workflow:
            self._workflow = call.workflow
            os.environ.pop("WINDLASS_WORKFLOW", None)
            if call.workflow is not None:
                os.environ["WINDLASS_WORKFLOW"] = str(call.workflow)
        return job

    def _forget_secrets(self) -> None:
        """Puts back what this job's secrets replaced, before the next job of this process."""
        for name, value in self._shadowed.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        self._shadowed = {}

    def _flush(self) -> None:
        """Waits until the executor has read this job's output: what follows is another's."""
        self.flush_streams()
        waited = 0.0
        while waited < FLUSH_LIMIT_S:
            if fcntl.ioctl(self._output, termios.FIONREAD, _EMPTY) == _EMPTY:
                return
            time.sleep(FLUSH_PAUSE_S)
            if not self._page[HELD]:  # Otherwise it is read when the log has room again.
                waited += FLUSH_PAUSE_S

    def flush_streams(self) -> None:
        """Flushes Python's output buffers."""
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # A function may close its output.

    def _terminate(self, *_: object) -> None:
        self._ending = True
        if self._working:
            self._working = False
            raise Canceled
        if self._waiting:
            raise SystemExit(0)

    def _send(self, message: msgspec.Struct) -> None:
        with self._lock:
            self._connection.sendall(frame([message]))

    # Called by a running job

    def progress(self, seq: int, value: object) -> None:
        self._send(Progress(seq, msgspec.json.encode(value)))

    def alive(self, seq: int) -> None:
        self._send(Alive(seq))

    def log(self, seq: int, text: str) -> None:
        if seq == self._page[CURRENT]:  # A thread may outlive the job that started it.
            sys.stderr.write(text)

    def canceled(self, seq: int) -> bool:
        return bool(self._page[STOPPED] == seq)

    def ask(self, seq: int, body: bytes, what: str = JOBS) -> Answer:
        """Threads of a function take turns, and nothing else uses this channel."""
        with self._asking:
            self._asked += 1
            self._send(Ask(seq, self._asked, body, what))
            while data := self._connection.recv(PACKET_LIMIT):
                for found in self._frames.feed(data):
                    for order in decode_orders(found):
                        if isinstance(order, Answer) and order.number == self._asked:
                            return order
            raise Canceled

    async def ask_async(self, seq: int, body: bytes, what: str = JOBS) -> Answer:
        return self.ask(seq, body, what)  # its loop belongs to the function, and may wait


class LoneServer(Server):
    """Runs one call and exits; its output goes straight to the job's log."""

    alone = True

    def serve(self) -> None:
        """Takes the call, runs it and reports how it ended."""
        self.listen()
        call = self._receive()
        if call is None:
            return
        self._page[CURRENT] = call.seq
        report = self._run(call)
        if os.getpid() == self._pid:
            self.flush_streams()
            self._send(report)

    def _receive(self) -> Call | None:
        while data := self._connection.recv(PACKET_LIMIT):
            for found in self._frames.feed(data):
                for order in decode_orders(found):
                    if isinstance(order, Call):
                        return order
        return None

    def canceled(self, seq: int) -> bool:
        """Returns whether it was told to stop: there is no other call."""
        return seq == self._page[CURRENT] and self._ending


def serve_alone() -> None:
    """Runs the one call that comes over its standard input, so it needs no file of the agent's."""
    connection = take_connection()
    _, (side, *asking), _, _ = socket.recv_fds(connection, 1, 2)
    for fd in (side, *asking):
        os.set_inheritable(fd, False)
    if asking:
        use_snapshot(socket.socket(fileno=asking[0]))
    write_lines_out()
    server = LoneServer(connection, connection, array.array("Q", [0] * PAGE_WORDS), -1)
    answer_stacks(socket.socket(fileno=side), server.stacks_of)
    server.serve()


if __name__ == "__main__":
    main()

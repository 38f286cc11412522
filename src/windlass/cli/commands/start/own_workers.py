"""The worker processes of `windlass up`: it starts, restarts, adopts and drains them.

A worker outlives a killed `windlass up`, with its jobs. The next one adopts it if it would start
the same, and replaces it otherwise.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from windlass.cli.commands.start.hidden_from_jobs import (
    CODE,
    HELD,
    KEEPS_NO_TOKEN,
    RELOADED,
    TOKEN,
    hold,
    secrets_of,
    without_secrets,
)
from windlass.cli.commands.start.local_server import Stopping
from windlass.cli.output.job_table import command_of
from windlass.cli.output.text import YELLOW, say
from windlass.clock import RealClock
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.views import JobFilter
from windlass.domain.values.errors import Conflict
from windlass.engine.access import Access
from windlass.messages.jobs import Job
from windlass.providers.local import end_workers, workers_below
from windlass.server.services import ServerServices

RESTART_MS = 1_000
CODE_MS = 600_000  # How long a worker may take to enrol.
WORKERS = "workers"
LOCK = "workers.lock"
LOOK_MS = 250
ASKED = 40  # times, until a worker that does not stop is killed
REPORT_MS: Final = 1_000
STOP_MS: Final = 5_000  # for a worker that was told to stop at once
FEW: Final = 3
RUNNING: Final = tuple(
    state.code for state in (State.RUNNING, State.ASSIGNED, State.CANCELING, State.TIMED_OUT)
)
LISTED: Final = 100


class Running(Protocol):
    """A worker's process."""

    @property
    def returncode(self) -> int | None: ...

    def send_signal(self, signal: int, /) -> None: ...

    async def wait(self) -> int | None: ...


class Adopted:
    """A worker of an earlier `windlass up`; only its parent could know how it ends."""

    returncode: int | None = None

    def __init__(self, pid: int) -> None:
        self._fd = os.pidfd_open(pid)

    def send_signal(self, number: int, /) -> None:
        """Sends it a signal."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, number)

    async def wait(self) -> int | None:
        """Waits for its end."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._fd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._fd)
            os.close(self._fd)
        return None


class OwnWorkers(NamedTuple):
    """What the workers of one `windlass up` have in common."""

    directory: Path
    address: str
    access: Access
    slots: int
    reload: bool = False
    secrets: Path | None = None

    async def keep(self, number: int, stopping: Stopping) -> None:
        """Keeps one worker running until `stopping` is set; restarts it if it dies.

        Each start gets a new code for one enrolment: the worker never has a token of the server's.
        """
        clock = RealClock()
        while not stopping.soon.is_set():
            process = self._adopt(number) or await self._start(number)
            ended = asyncio.create_task(_end_of(process))
            if not await ended_before(ended, stopping.soon):
                process.send_signal(signal.SIGTERM)
                await _end(ended, stopping.at_once, process.send_signal)
            elif not stopping.soon.is_set():
                code = process.returncode
                if code == RELOADED:
                    say(f"worker {number + 1}: its code has changed; restarting")
                    continue
                how = "" if code is None else f" with code {code}"
                say(f"worker {number + 1} exited{how}; restarting", YELLOW)
                await clock.sleep_ms(RESTART_MS)

    def names(self, workers: int) -> frozenset[str]:
        """Returns the names of the first `workers` of them."""
        return frozenset(self._name(number) for number in range(workers))

    async def end_others(self, workers: int) -> None:
        """Stops workers of an earlier `windlass up` that this one would not start the same way."""
        wanted = [self._command(number) for number in range(workers)]
        clock = RealClock()
        for tried in range(2 * ASKED):
            others = [pid for pid in self._left() if _command_of(pid) not in wanted]
            if not others:
                return
            if not tried:
                say("stopping workers that an earlier `windlass up` left running", YELLOW)
            for pid in others:
                with contextlib.suppress(ProcessLookupError):
                    # The first lets jobs finish, the second hands them back at once.
                    os.kill(pid, signal.SIGINT if tried < ASKED else signal.SIGKILL)
            await clock.sleep_ms(LOOK_MS)

    def _left(self) -> list[int]:
        return workers_below(self.directory / WORKERS)

    def _adopt(self, number: int) -> Running | None:
        """Returns a worker that an earlier `windlass up` has started in the same way."""
        command = self._command(number)
        for pid in self._left():
            if _command_of(pid) == command:
                with contextlib.suppress(ProcessLookupError):
                    return Adopted(pid)
        return None

    async def _start(self, number: int) -> Running:
        # The old process is a child that has died, or was left by an earlier `windlass up`.
        code, _ = await self.access.create_code(
            CODE_MS, "windlass up", worker=self._name(number), takeover=True
        )
        given = {name: value for name, value in secrets_of(os.environ).items() if name != TOKEN}
        held = hold({**given, CODE: code, KEEPS_NO_TOKEN: "1"})
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable, *self._command(number),
                env={**without_secrets(os.environ), HELD: str(held)}, pass_fds=[held],
                start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(held)

    def _name(self, number: int) -> str:
        return f"{os.uname().nodename}-{number + 1}"

    def _command(self, number: int) -> Sequence[str]:
        return [
            "-m", "windlass", "worker", "--server", self.address,
            "--name", self._name(number), "--slots", str(self.slots),
            "--state", str(self.directory.absolute() / WORKERS / str(number + 1)),
            *(["--reload"] if self.reload else []),
            *(["--secrets", str(self.secrets.absolute())] if self.secrets else []),
        ]  # fmt: skip


async def _end_of(process: Running) -> None:
    await process.wait()


async def _end(
    ending: "asyncio.Task[None]", at_once: asyncio.Event, send: Callable[[int], None]
) -> None:
    """Lets workers finish their jobs; at once, they hand them back, or else are killed."""
    if await ended_before(ending, at_once):
        return
    for number in (signal.SIGINT, signal.SIGKILL):
        send(number)
        done, _ = await asyncio.wait({ending}, timeout=STOP_MS / 1000)
        if done:
            return


def _command_of(pid: int) -> Sequence[str]:
    """Returns the words after the program; none if the process has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
    return [os.fsdecode(word) for word in words[1:-1]]


@contextlib.contextmanager
def sole_owner(directory: Path, workers: int) -> Iterator[bool]:
    """Yields whether no other `windlass up` has workers in this directory.

    Raises `Conflict` if one has, and this one should have some too.
    """
    fd = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except BlockingIOError:
            alone = False
        if workers and not alone:
            raise Conflict(
                "up_running",
                f"another `windlass up` has workers in {directory}: stop it, or start this one "
                "with --workers 0 or with another --data",
            )
        yield alone
    finally:
        os.close(fd)


async def report_draining(services: ServerServices, workers: Callable[[], Collection[str]]) -> None:
    """Prints every second which jobs of these workers are still running."""
    clock = RealClock()
    while True:
        await clock.sleep_ms(REPORT_MS)
        found = await services.queries.jobs(JobFilter(states=RUNNING), None, LISTED)
        names = workers()
        say(describe([job for job in found.jobs if job.worker in names]))
        sys.stdout.flush()


def describe(jobs: Collection[Job]) -> str:
    """Returns a line that says which jobs the server is waiting for."""
    if not jobs:
        return "waiting for workers to stop; Ctrl-C stops at once"
    shown = [f"{job.id} ({job.name or command_of(job)})" for job in list(jobs)[:FEW]]
    more = f" and {len(jobs) - FEW} more" if len(jobs) > FEW else ""
    plural = "s" if len(jobs) > 1 else ""
    return f"waiting for job{plural} {', '.join(shown)}{more}; Ctrl-C stops at once"


async def end_pool_workers(place: Path, limit_ms: int, at_once: asyncio.Event) -> None:
    """Lets the workers of local pools finish their jobs, or interrupts them when asked to."""

    def send(number: int) -> None:
        for pid in workers_below(place):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    ending = asyncio.create_task(end_workers(place, RealClock(), limit_ms))
    await _end(ending, at_once, send)


async def ended_before(ending: "asyncio.Task[None]", at_once: asyncio.Event) -> bool:
    """Waits for one of both, and returns whether the task has ended."""
    hurry = asyncio.create_task(at_once.wait())
    await asyncio.wait({ending, hurry}, return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()
    return ending.done()

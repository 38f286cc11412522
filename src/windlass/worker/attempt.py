"""One attempt on the agent: what its executor sees of it, and how it ends.

Whatever stops it first decides what is reported: a cancel, a timeout, a drain, a lost
lease, or the end of its own process.
"""

import asyncio
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import structlog

from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.domain.values.quantities import format_duration
from windlass.ports.clock import Clock
from windlass.ports.executor import Executor, Limits, Result
from windlass.ports.gateway import Gateway, Holder
from windlass.wire.jobs import SubmitReply, SubmitRequest
from windlass.wire.sync import Assignment, Finished, Released
from windlass.worker import artifacts, children
from windlass.worker.job_socket import JobSocket
from windlass.worker.keeper_client import Fenced, KeeperClient, KeptProcess, SpawnFailed
from windlass.worker.logs import LogPump
from windlass.worker.masking import Mask
from windlass.worker.progress import Progress
from windlass.worker.scratch import Scratch
from windlass.worker.secrets import Secrets

Why = Literal["canceled", "timed_out", "released", "lost"]
Report = Finished | Released
Begin = Callable[["Attempt", Callable[[Result], None]], None]

KNOWN_MS = 2_000  # for the first bytes of a log to be kept
DRAIN_MS = 2_000  # how long a pipe may stay open when its job has ended
COARSE_MS = 10_000  # timeouts above this are looked at now and then
EXTRA_S = 5  # beyond the grace, for executors to tidy up after their processes
MESSAGE_LIMIT = 4_000
UNANSWERED = "no server answered"
UNSTOPPED = Result(outcome="failed", message="did not stop in time")
STARVED = frozenset({11, 12, 23, 24, 28})  # EAGAIN, ENOMEM, ENFILE, EMFILE, ENOSPC

log = structlog.get_logger()


class _Spec(msgspec.Struct):
    task: str
    args: msgspec.Raw = msgspec.Raw(b"null")
    workflow: int | None = None
    namespace: str = "default"
    secrets: tuple[str, ...] = ()
    resources: dict[str, Any] | None = None


class Surroundings(NamedTuple):
    """What all attempts of an agent share."""

    gateway: Gateway
    keeper: KeeperClient
    scratch: Scratch
    clock: Clock
    worker: int
    incarnation: int
    log_limit: int
    grace_ms: int
    fenced: Callable[[], bool]  # whether the deadline has passed
    secrets: Secrets
    socket: JobSocket


read_spec = msgspec.json.Decoder(_Spec).decode


class Attempt:
    """Implements `JobContext`."""

    __slots__ = (
        "_around", "_asked", "_assignment", "_dirty", "_done", "_due_at", "_env", "_exited",
        "_idle_timer", "_last_resort", "_log", "_mask", "_message", "_over", "_processes",
        "_progress", "_scratch", "_seen_at", "_spec", "_stopping", "_task", "_timeout_ms", "_timer",
        "_why", "attempt", "job", "key", "secrets",
    )  # fmt: skip

    def __init__(
        self,
        around: Surroundings,
        assignment: Assignment,
        spec: _Spec,
        done: Callable[["Attempt", Report | None], None],
    ) -> None:
        self.job = assignment.job
        self.attempt = assignment.attempt
        self.key = (assignment.job, assignment.attempt)
        self._around = around
        self._assignment = assignment
        self._spec = spec
        self._done = done
        self._why: Why | None = None
        self._message: str | None = None
        self._exited = False  # its process ended by itself, before anything stopped it
        self._over = False
        self._processes: list[KeptProcess] = []
        self._scratch: Path | None = None
        self._dirty = False
        self._log: LogPump | None = None
        self._progress: Progress | None = None
        self._stopping: asyncio.Event | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._last_resort: asyncio.TimerHandle | None = None
        self._seen_at = 0.0
        self._timeout_ms = assignment.timeout_ms
        self._due_at = math.inf
        self._task: asyncio.Task[None] | None = None
        self._asked = 0  # how often it has submitted jobs
        self._env: dict[str, str] = {
            "WINDLASS_JOB": str(self.job),
            "WINDLASS_ATTEMPT": str(self.attempt),
        }
        if spec.workflow is not None:
            self._env["WINDLASS_WORKFLOW"] = str(spec.workflow)
        self.secrets: Mapping[str, str] = {}
        self._mask: Mask | None = None
        if spec.secrets:
            self._hold_secrets(spec)

    def _hold_secrets(self, spec: _Spec) -> None:
        secrets = self._around.secrets
        self.secrets = secrets.pick(spec.secrets, spec.namespace)
        self._mask = secrets.mask(spec.secrets, spec.namespace)
        self._env.update(self.secrets)

    def start(self, executor: Executor) -> None:
        """Run it."""
        loop = asyncio.get_running_loop()
        timeout = self._assignment.timeout_ms
        if timeout > COARSE_MS:
            self._due_at = loop.time() + timeout / 1000
        elif timeout:
            self._timer = loop.call_later(timeout / 1000, self._time_out)
        if self._assignment.idle_timeout_ms:
            self._seen_at = loop.time()
            self._look_idle()
        begin: Begin | None = getattr(executor, "begin", None)
        if begin is None:
            self._task = loop.create_task(self._run(executor))
        else:
            begin(self, self._settle)

    @property
    def flushing(self) -> "asyncio.Task[None] | None":
        """What still sends the log of an attempt that has ended."""
        return None if self._log is None else self._task

    # What executors see

    @property
    def workflow(self) -> int | None:
        return self._spec.workflow

    @property
    def args(self) -> Any:
        return msgspec.json.decode(self._spec.args)

    @property
    def spec(self) -> Mapping[str, Any]:
        spec: dict[str, Any] = msgspec.json.decode(self._assignment.spec)
        return spec

    @property
    def scratch(self) -> Path:
        """A folder of the attempt's own; asking for it makes it."""
        path = self._folder()
        path.mkdir(mode=0o700, exist_ok=True)
        self._dirty = True
        return path

    @property
    def env(self) -> Mapping[str, str]:
        return {**self._around.keeper.base, **self._env}

    @property
    def timeout_ms(self) -> int:
        return self._timeout_ms

    @property
    def stopping(self) -> asyncio.Event:
        if self._stopping is None:
            self._stopping = asyncio.Event()
            if self._why is not None:
                self._stopping.set()
        return self._stopping

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes | None = None,
        limits: Limits | None = None,
        capture: bool = False,
    ) -> KeptProcess:
        """Start a process in its own group, through the keeper."""
        if self._why is not None:
            raise Fenced("the attempt is being stopped")
        self._env.update(self._around.socket.admit(self.key, self.submit))
        listen, stdout = os.pipe() if capture else (-1, None)
        process = self._around.keeper.spawn(
            argv,
            self._env if env is None else {**env, **self._env},
            whole=env is not None,
            cwd=str(self._folder() if cwd is None else cwd),
            make=cwd is None,
            stdin=None if stdin is None else _memory_file(stdin),
            stdout=stdout,
            limits=limits,
            tag=f"WINDLASS_JOB={self.job}".encode(),
        )
        process.on_output = self.log
        process.on_pipe = self._attach
        self._processes.append(process)
        if capture:
            process.stdout = await _reader(listen)
        await process.changed()
        return process

    async def measured(self, duration_ms: int) -> None:
        """Tell how long the media is; if nobody answers, the old timeout stays."""
        try:
            timeout_ms = await self._around.gateway.measured(self._holder(), duration_ms)
        except WindlassError as error:
            log.info("duration_not_told", job=self.job, reason=error.message)
            return
        due_at = self._due_at if self._timer is None else self._timer.when()
        if not timeout_ms or self._why is not None or due_at == math.inf:
            return
        if self._timer is not None:
            self._timer.cancel()
        started_at = due_at - self._timeout_ms / 1000
        self._timeout_ms, self._due_at = timeout_ms, math.inf
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(started_at + timeout_ms / 1000, self._time_out)

    def log(self, data: bytes) -> None:
        self._pump().feed(data)

    def log_full(self, resume: Callable[[], None]) -> bool:
        return self._log is not None and self._log.full(resume)

    def progress(self, value: Any) -> None:
        self._note_activity()
        if self._mask is not None:
            value = self._mask.value(value)
        if self._progress is None:
            self._progress = Progress(self._around.gateway, self._holder(), self._around.clock)
        self._progress.tell(value)

    async def fetch(self, job: int, artifact: str, path: str) -> None:
        """Place an artifact of another job at `path` in the scratch directory."""
        gateway = self._around.gateway
        await artifacts.place(gateway, self._holder(), job, artifact, self.scratch, path)

    async def upload(self, patterns: Sequence[str]) -> None:
        """Upload the files of the scratch directory that match, before `run` returns."""
        for pattern in patterns:
            found = artifacts.matching(self._folder(), pattern)
            if not found:
                self.log(f"[windlass] no file matches the artifact {pattern}\n".encode())
            for name, path in found:
                await artifacts.send(
                    self._around.gateway, self._holder(), name, path, self._around.clock
                )

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        """Submit jobs into the workflow of this one."""
        self._asked += 1
        around = self._around
        return await children.submit(
            around.gateway, around.clock, self._holder(), request, self._asked
        )

    # Stopping

    def stop(self, why: Why, message: str | None = None) -> None:
        """End it: SIGTERM, grace, SIGKILL; at once if the lease is lost."""
        if self._why == "lost" or (self._why is not None and why != "lost"):
            return
        self._why = why
        self._message = message
        grace = 0 if why == "lost" else self._around.grace_ms
        for process in self._processes:
            process.ask_to_stop(grace)
        if self._stopping is not None:
            self._stopping.set()
        if not self._over and self._last_resort is None:
            wait = grace / 1000 + EXTRA_S
            loop = asyncio.get_running_loop()
            self._last_resort = loop.call_later(wait, self._give_up)

    def _give_up(self) -> None:
        """Its executor did not stop it."""
        if self._task is not None:
            self._task.cancel()
        else:
            self._settle(UNSTOPPED)

    def check_time(self, now: float) -> None:
        """Time out if it is late: for long timeouts, which need no timer each."""
        if now >= self._due_at:
            self._time_out()

    def _time_out(self) -> None:
        self.stop("timed_out", f"Timed out after {format_duration(self.timeout_ms)}")

    def _look_idle(self) -> None:
        loop = asyncio.get_running_loop()
        limit = self._assignment.idle_timeout_ms
        due = self._seen_at + limit / 1000
        if loop.time() >= due:
            self.stop("timed_out", f"No sign of life for {format_duration(limit)}")
        else:
            self._idle_timer = loop.call_at(due, self._look_idle)

    # Running

    async def _run(self, executor: Executor) -> None:
        report: Report | None = None
        try:
            report = self._conclude(await self._attempt(executor))
        except asyncio.CancelledError:
            report = self._conclude(UNSTOPPED)
        finally:
            self._end(report)
        await self._finish_log()

    def _settle(self, result: Result) -> None:
        """An executor that needs no task for each job has ended this one."""
        if self._over or self._task is not None:
            return
        self._exited = self._why is None
        if self._log is None:
            self._end(self._conclude(result))
        else:
            self._task = asyncio.get_running_loop().create_task(self._settle_logged(result))

    async def _settle_logged(self, result: Result) -> None:
        try:
            await self._log_known()
        finally:
            self._end(self._conclude(result))
        await self._finish_log()

    def _end(self, report: Report | None) -> None:
        self._over = True
        for timer in (self._timer, self._idle_timer, self._last_resort):
            if timer is not None:
                timer.cancel()
        for process in self._processes:
            process.ask_to_stop(0)
        self._around.socket.dismiss(self.key)
        if self._scratch is not None:
            self._give_back_scratch()
        self._done(self, report)

    async def _log_known(self) -> None:
        if self._log is not None:
            await self._log.drained(DRAIN_MS)
            await self._log.known(KNOWN_MS)

    async def _finish_log(self) -> None:
        if self._log is not None:
            if self._why == "lost":
                self._log.abandon()
            ends = [process.ended for process in self._processes if process.ended is not None]
            self._log.peak_memory = max((end.peak_bytes for end in ends), default=0)
            await self._log.finish()

    async def _attempt(self, executor: Executor) -> Result:
        try:
            result = await executor.run(self)
        except Fenced as error:
            if self._why is None:
                self.stop("released", error.message)
            return Result(outcome="failed", message=error.message)
        except SpawnFailed as error:
            failure = "resource" if error.number in STARVED else "configuration"
            return Result(outcome="failed", failure=failure, message=error.message)
        except InvalidInput as error:
            return Result(
                outcome="failed",
                failure="configuration",
                message=error.message,
                misfit=not self._processes,
            )
        except OSError as error:
            failure = "resource" if error.errno in STARVED else "execution"
            return Result(outcome="failed", failure=failure, message=str(error))
        except WindlassError as error:
            return Result(outcome="failed", failure="network", message=error.message)
        except Exception as error:
            log.exception("executor_failed", task=executor.task, job=self.job)
            name = type(error).__name__
            return Result(outcome="failed", failure="execution", message=f"{name}: {error}")
        self._exited = self._why is None
        await self._log_known()
        return result

    def _conclude(self, result: Result) -> Report | None:
        """What the server is told."""
        ends = [process.ended for process in self._processes if process.ended is not None]
        failed = result.outcome != "completed"
        if any(end.fenced for end in ends) or (failed and self._around.fenced()):
            self._exited = False
            self.stop("released", UNANSWERED)
        if self._why is None or self._exited:
            return _finished(self.key, result, self._mask)
        if self._why == "lost":
            return None
        if self._why == "released":
            return Released(*self.key, reason=self._message)
        return Finished(
            *self.key, outcome=self._why, exit_code=result.exit_code, message=self._message
        )

    def _give_back_scratch(self) -> None:
        assert self._scratch is not None
        ended = [process.ended for process in self._processes]
        dirty = self._dirty or any(end is None or end.dirty for end in ended)
        self._around.scratch.give_back(self._scratch, dirty)
        self._scratch = None

    # Parts

    def _folder(self) -> Path:
        if self._scratch is None:
            self._scratch = self._around.scratch.take()
        return self._scratch

    def _holder(self) -> Holder:
        return Holder(self._around.worker, self._around.incarnation, self.job, self.attempt)

    def _pump(self) -> LogPump:
        if self._log is None:
            around = self._around
            self._log = LogPump(
                around.gateway, self._holder(), around.log_limit, around.clock, self._note_activity,
                None if self._mask is None else self._mask.stream(),
            )  # fmt: skip
        return self._log

    def _attach(self, fd: int) -> None:
        self._pump().attach(fd)

    def _note_activity(self) -> None:
        if self._idle_timer is not None:
            self._seen_at = asyncio.get_running_loop().time()


def _finished(key: tuple[int, int], result: Result, mask: Mask | None) -> Finished:
    message, value, outcome, failure = result.message, result.result, result.outcome, result.failure
    if mask is not None:
        message, value = mask.value(message), mask.value(value)
    if message is not None:
        message = message[:MESSAGE_LIMIT]
    if value is not None:
        try:
            msgspec.json.encode(value)
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            value, outcome, failure = None, "failed", "configuration"
            message = f"the result is not a JSON value: {error}"
    return Finished(*key, outcome, result.exit_code, failure, message, value, result.misfit)


def _memory_file(data: bytes) -> int:
    """A file in memory that holds `data`, to be read from its start."""
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

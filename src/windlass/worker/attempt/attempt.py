"""One attempt on the worker: what its executor sees of it, and how it ends.

The first thing that stops it decides what is reported: a cancel, a timeout, a drain, a lost lease,
or the end of its own process.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import structlog

from windlass.domain.matching.indices import GPUS
from windlass.domain.matching.isolation import WEAKEST
from windlass.domain.values.errors import Overloaded, StoreUnavailable, WindlassError
from windlass.domain.values.ids import shown_attempt
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.sync import Assignment, Finished, Released
from windlass.ports.executor import Executor, Granted, Limits, Process, Result
from windlass.ports.gateway import Holder
from windlass.worker.attempt import calls
from windlass.worker.attempt.calls import Progress, tell_stack
from windlass.worker.attempt.context import AgentContext, SubmitSocket
from windlass.worker.attempt.files import Files
from windlass.worker.attempt.log import AttemptLog
from windlass.worker.attempt.processes import Processes, combined
from windlass.worker.attempt.records import NOTE, UNSTOPPED, finished, result_of, with_last_line
from windlass.worker.attempt.secrets import Mask
from windlass.worker.attempt.spec import AttemptSpec, isolation_of
from windlass.worker.attempt.timers import DEFAULT, Timers, unless_stopped
from windlass.worker.core.ports import AttemptEnded, Report, StopReason
from windlass.worker.isolation.confinement import Confinement, Wish
from windlass.worker.keeper.kept_process import Fenced, Program

Done = TypeVar("Done")
Begin = Callable[["Attempt", Callable[[Result], None]], None]

EXTRA_S = 5  # beyond the grace, for executors to clean up after their processes

log = structlog.get_logger()


class Attempt:
    """Implements `JobContext` for its executor and `RunningAttempt` for the agent core.

    Its log, processes and files are created on demand: a short Python function needs none of them.
    """

    __slots__ = (
        "_asked", "_assignment", "_back_off", "_confinement", "_context", "_credentials", "_done",
        "_env", "_executor", "_exited", "_files", "_has_files", "_log", "_mask", "_message",
        "_over", "_processes", "_progress", "_record", "_spec", "_stopping", "_task", "_timers",
        "_why", "attempt", "granted", "isolation", "job", "key", "secrets", "trace",
    )  # fmt: skip

    def __init__(
        self,
        context: AgentContext,
        assignment: Assignment,
        spec: AttemptSpec,
        executor: Executor,
        done: AttemptEnded,
    ) -> None:
        job, attempt = self.key = assignment.job, assignment.attempt
        self.job = job
        self.attempt = shown_attempt(attempt, assignment.handed_back)
        self._context = context
        self._assignment = assignment
        self._spec = spec
        self._has_files = spec.has_files
        self.isolation = isolation_of(context.isolation, assignment, spec)
        self._executor = executor
        self._done = done
        self._why: StopReason | None = None
        self._message: str | None = None
        self._back_off = False  # the next attempt would fail for the same reason
        self._exited = False  # its process ended on its own, before anything stopped it
        self._over = False
        self._stopping: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._progress: Progress | None = None
        self._asked = 0  # how many times it has submitted jobs
        self._record = context.records.begin(assignment, spec)
        self._env, self.trace = self._record.env(), self._record.trace
        self.granted: Granted | None = None
        if assignment.indices is not None:
            self.granted = context.index_use.grant(assignment.indices)
            self._env.update(self.granted.variables)
        self.secrets: Mapping[str, str] = {}
        self._credentials: str | None = None  # for the registry of its image
        self._mask: Mask | None = None
        if spec.secrets or spec.registry_secret is not None:
            self._hold_secrets(spec)
        self._timers = Timers(
            assignment.timeout_ms, assignment.idle_timeout_ms, partial(self.stop, "timed_out"),
            self._near_timeout,
            "" if spec.says_when_it_ends else DEFAULT,
        )  # fmt: skip
        self._log: AttemptLog | None = None
        self._processes: Processes | None = None
        self._files: Files | None = None
        self._confinement: Confinement | None = None

    def _hold_secrets(self, spec: AttemptSpec) -> None:
        secrets = self._context.secrets
        self.secrets = secrets.pick(spec.secrets, spec.namespace)
        self._mask = secrets.mask(spec.all_secrets, spec.namespace)
        self._env.update(self.secrets)
        if spec.registry_secret is not None:
            held = secrets.pick((spec.registry_secret,), spec.namespace)
            self._credentials = held.get(spec.registry_secret)

    def start(self) -> None:
        """Runs it."""
        self._timers.start()
        begin: Begin | None = getattr(self._executor, "begin", None)
        if begin is None or self.granted is not None or self.alone or self._has_files:
            self._task = asyncio.get_running_loop().create_task(self._run())
        else:
            begin(self, self._settle)

    @property
    def flushing(self) -> "asyncio.Task[None] | None":
        """Returns the task that still sends the log of an attempt that has ended."""
        return self._task if self._log is not None else None

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
    def version(self) -> str | None:
        return self._spec.version

    @property
    def scratch(self) -> Path:
        """Returns a folder of the attempt's own; makes it on first use."""
        return self._files_made().made_folder()

    @property
    def env(self) -> Mapping[str, str]:
        return {**self._context.keeper.base, **self._env}

    @property
    def alone(self) -> bool:
        spec = self._spec
        if spec.limits is not None or self._context.limits is not None:
            return True
        demanded = spec.isolation or spec.network or spec.image or self._assignment.isolation
        return self.isolation != WEAKEST and (demanded is not None or self._has_files)

    @property
    def namespace(self) -> str:
        return self._spec.namespace

    @property
    def own_mode(self) -> bool:
        return self.isolation == self._context.isolation.default

    @property
    def timeout_ms(self) -> int | None:
        return self._timers.timeout_ms

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
        stdin: bytes | int | None = None,
        limits: Limits | None = None,
        capture: bool = False,
    ) -> Process:
        """Starts a process in its own group, through the keeper."""
        if self._why is not None:
            raise Fenced("the attempt is being stopped")
        limits = combined(limits, self._spec.limits, self._context.limits)
        if self.granted is not None and self.granted.cpus:
            limits = msgspec.structs.replace(limits or Limits(), cpus=self.granted.cpus)
        self._env.update(self._socket.admit(self.key, self.submit))
        if self._processes is None:
            self._confinement = self._confine()
            self._processes = Processes(
                self._context.keeper, self.job, self.log, lambda fd: self._log_made().attach(fd),
                self._confinement, self._unless_stopped,
            )  # fmt: skip
        program = Program(
            argv=tuple(argv), env={**(env or {}), **self._env},
            cwd=str(self._files_made().folder() if cwd is None else cwd), make=cwd is None,
            limits=limits, start=self._context.isolation.plain,
        )  # fmt: skip
        return await self._processes.spawn(program, stdin=stdin, capture=capture)

    async def measured(self, duration_ms: int) -> None:
        """Reports the duration of the media; without an answer, the old timeout stays."""
        try:
            timeout_ms = await self._context.gateway.measured(self._holder(), duration_ms)
        except WindlassError as error:
            log.info("duration_not_told", job=self.job, reason=error.message)
            return
        if self._why is None:
            self._timers.change_timeout(timeout_ms)

    def log(self, data: bytes) -> None:
        self._log_made().write(data)

    def log_full(self, resume: Callable[[], None]) -> bool:
        return self._log is not None and self._log.full(resume)

    def progress(self, value: Any) -> None:
        self._timers.note_activity()
        if self._mask is not None:
            value = self._mask.value(value)
        self._progress_made().tell(value)

    async def fetch(self, job: int, artifact: str, path: str) -> None:
        """Places an artifact of another job at `path` in the scratch directory."""
        await self._files_made().fetch(job, artifact, path)

    async def upload(self, patterns: Sequence[str]) -> None:
        """Uploads the files of the scratch directory that match, before `run` returns."""
        missing = "no file matches the artifact"
        await self._files_made().upload(patterns, lambda name: self._note(f"{missing} {name}"))

    def _note(self, text: str) -> None:
        self.log(f"{NOTE}{text}\n".encode())

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        """Submits jobs into the workflow of this one."""
        self._asked += 1
        if self._mask is not None:
            request = calls.conceal_children(request, self._mask)
        request, context = self._record.adopt(request), self._context
        holder, number = self._holder(), self._asked
        return await calls.submit_children(context.gateway, context.clock, holder, request, number)

    async def step(self, request: StepRequest) -> StepReply:
        """Stores a step of the function, or begins its wait."""
        self._timers.note_activity()
        request = calls.conceal_step(request, self._mask)
        return await calls.ask_step(self._context, self._holder(), request, lambda: bool(self._why))

    def alive(self) -> None:
        """Resets the idle timeout, here and at the server."""
        self._timers.note_activity()
        self._progress_made().note_alive()

    # Stopping

    def stop(self, why: StopReason, message: str | None = None) -> None:
        """Ends it: SIGTERM, grace, SIGKILL; at once if the lease is lost."""
        if self._why == "lost" or (self._why is not None and why != "lost"):
            return
        self._why = why
        self._message = message
        grace = 0 if why == "lost" else self._context.grace_ms
        if self._processes is not None:
            self._processes.stop(grace)
        if self._stopping is not None:
            self._stopping.set()
        if not self._over:
            self._timers.limit_stop(grace / 1000 + EXTRA_S, self._give_up)

    def _give_up(self) -> None:
        """Ends it without its executor, which did not stop in time."""
        if self._task is not None:
            self._task.cancel()
        else:
            self._settle(UNSTOPPED)

    def show_stack(self, request: int) -> None:
        """Tells the server the current stack of its function."""
        tell_stack(self._context.gateway, self._holder(), request, self._executor, self, self._mask)

    def check_time(self, now: float) -> None:
        """Times out if it is late: for long timeouts, which have no timers of their own."""
        self._timers.check(now)

    def _near_timeout(self, message: str) -> None:
        """Warns in the logs of the job and of the worker."""
        if self._why is None:
            self._note(message)
            log.warning("job near its timeout", job=self.job, reason=message)

    # Running

    async def _run(self) -> None:
        report: Report | None = None
        try:
            report = self._conclude(await self._execute(self._carried_out()))
        except asyncio.CancelledError:
            report = self._conclude(UNSTOPPED)
        finally:
            self._end(report)
        await self._finish_log()

    def _settle(self, result: Result) -> None:
        """Ends an attempt whose executor needs no task for each job."""
        if self._over or self._task is not None:
            return
        self._exited = self._why is None
        if self._log is None and not result.leaves_more(self._context.result_limit):
            self._end(self._conclude(result))
        else:
            self._task = asyncio.get_running_loop().create_task(self._settle_later(result))

    async def _kept(self, result: Result) -> Result:
        """Returns the result with large parts and files of it as artifacts."""
        self._exited = self._exited or self._why is None
        if self._exited and result.leaves_more(self._context.result_limit):
            return await self._files_made().keep(result, self._mask)
        return result

    async def _settle_later(self, result: Result) -> None:
        try:
            result = await self._execute(self._kept(result))
        finally:
            self._end(self._conclude(result))
        await self._finish_log()

    def _end(self, report: Report | None) -> None:
        self._over = True
        self._record.end(report)
        self._timers.cancel()
        processes = self._processes
        if processes is not None:
            processes.stop(0)
        context = self._context
        self._socket.dismiss(self.key)
        if self._files is not None:
            self._files.give_back(processes is not None and processes.left_files)
        if self.granted is not None:
            self._free_indices()
        if self._confinement is not None and processes is not None:
            context.isolation.leave(self._confinement, processes.wait_over)
        self._done(self, report)

    def _free_indices(self) -> None:
        """Frees its indices once its last process is gone, which is usually now."""
        processes, free = self._processes, self._context.index_use.free
        if processes is None or processes.over:
            free(self.key)
        else:
            waiting = asyncio.get_running_loop().create_task(processes.wait_over())
            waiting.add_done_callback(lambda _: free(self.key))

    async def _finish_log(self) -> None:
        if self._log is not None:
            peak = 0 if self._processes is None else self._processes.peak_memory
            await self._log.finish(peak, lost=self._why == "lost")

    async def _carried_out(self) -> Result:
        """Runs the executor after preparing everything it needs."""
        if self._assignment.indices is not None:
            await self._take_indices(self._assignment.indices)
        if self._has_files:
            self._spec.args = await self._files_made().fill(self._spec.args)
        return await self._kept(await self._executor.run(self))

    async def _execute(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Returns the result of this work; turns what it raises into one."""
        try:
            result = await work
        except Fenced as error:
            if self._why is None:
                self.stop("released", error.message)
            return Result(outcome="failed", message=error.message)
        except (StoreUnavailable, Overloaded) as error:
            self._exited = False
            return self._postpone(error)
        except Exception as error:
            if not isinstance(error, WindlassError | OSError):
                log.exception("executor_failed", task=self._executor.task, job=self.job)
            return result_of(error, ran=self._exited or self._processes is not None)
        self._exited = self._exited or self._why is None
        if self._log is not None:
            await self._log.known()
        return result

    async def _take_indices(self, indices: Mapping[str, tuple[str, ...]]) -> None:
        """Waits for processes of ended attempts that still use them; raises if it is stopped."""
        await self._unless_stopped(self._context.index_use.take(self.key, indices))

    async def _unless_stopped(self, work: Coroutine[Any, Any, Done]) -> Done:
        return await unless_stopped(work, self.stopping)

    def _postpone(self, error: WindlassError) -> Result:
        """Hands the attempt back: a problem of the server is no fault of the job."""
        if self._why in (None, "timed_out"):
            self._why, self._message, self._back_off = "released", error.message, True
        return Result(outcome="failed", message=error.message)

    def _conclude(self, result: Result) -> Report | None:
        """Returns the report for the server."""
        fenced = self._processes is not None and self._processes.fenced
        deadline = self._context.deadline
        if fenced or (result.outcome != "completed" and deadline.has_passed()):
            self._exited = False
            self.stop("released", deadline.unanswered)
        if (self._why is None or self._exited) and result.unable:
            reason = result.message if self._mask is None else self._mask.value(result.message)
            return Released(*self.key, reason=reason, back_off=result.back_off, unable=True)
        if self._why is None or self._exited:
            if result.quotes_log and self._log is not None:
                result = with_last_line(result, self._log.end)
            return finished(self.key, result, self._mask)
        if self._why == "lost":
            return None
        if self._why == "released":
            return Released(*self.key, reason=self._message, back_off=self._back_off)
        return Finished(
            *self.key, outcome=self._why, exit_code=result.exit_code, message=self._message
        )

    # Parts

    def _holder(self) -> Holder:
        return Holder(self._context.worker, self._context.incarnation, *self.key)

    @property
    def _socket(self) -> SubmitSocket:
        context = self._context
        shared = context.user_socket if self.isolation in context.isolation.other_users else None
        return shared or context.socket

    def _progress_made(self) -> Progress:
        if self._progress is None:
            self._progress = Progress(self._context, self._holder())
        return self._progress

    def _log_made(self) -> AttemptLog:
        if self._log is None:
            active = self._timers.note_activity
            self._log = AttemptLog(self._context, self._holder(), self._mask, active)
        return self._log

    def _confine(self) -> Confinement | None:
        """Enters the isolation mode in which its programs run."""
        context, spec, mode = self._context, self._spec, self.isolation
        if mode == WEAKEST:
            return None
        indices = self._assignment.indices or {}
        wish = Wish(
            job=self.job, attempt=self.key[1], scratch=self._files_made().folder(),
            socket=self._socket.path, network=spec.network, image=spec.image,
            pull=spec.pull or "missing", devices=indices.get(GPUS, ()),
            secrets=frozenset(spec.secrets), credentials=self._credentials, note=self._note,
        )  # fmt: skip
        return context.isolation[mode].enter(wish)

    def _files_made(self) -> Files:
        if self._files is None:
            self._files = Files(self._context, self._holder(), self.isolation)
        return self._files

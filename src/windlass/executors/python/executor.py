"""Python functions as jobs: plain ones in killable processes, async ones in a separate loop.

Jobs that are isolated, or have limits, get processes of their own. A function never runs in the
agent, so that none can block its heartbeats. Processes are reused, and start before they are
needed. Short jobs cost no task, no timer and no event of their own here: only those that outlive a
few ticks are watched for a stop.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.matching.functions import function_key
from windlass.domain.matching.isolation import WEAKEST
from windlass.domain.tasks.python import Importable, NotAllowed, read_args
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.executors.limits import hint
from windlass.executors.python.code_store import CodeStore
from windlass.executors.python.crew import Crew, Crews, Loop
from windlass.executors.python.job import STOPPED, PythonJob, died_result, lost
from windlass.executors.python.known import MissingFunctions, describe_modules
from windlass.executors.python.messages import ALONE, Answer, Call, Frames, decode_reports, frame
from windlass.executors.python.pool import Pool
from windlass.executors.python.process import ProcessLauncher, Spawn, side_channel
from windlass.messages.files import StackThread
from windlass.ports.executor import Granted, JobContext, Limits, Result

TICK_S: Final = 0.02
CHECKED: Final = 1_000
NOTHING: Final = Granted({})
YOUNG_TICKS: Final = 5  # ticks after which a job is watched
READ: Final = 65_536
COMMAND: Final = ("-m", "windlass.executors.python.child", ALONE)
PATH: Final = "PYTHONPATH"
UNFIT: Final = (InvalidInput, OverflowError)  # what wrong arguments raise


class PythonExecutor:
    """Runs functions marked with `@windlass.task`.

    `limits` are for each process, `preload` names modules they import before any call, `env` is
    what they see besides the environment of all jobs, `grace_s` is how long an async function that
    must stop may delay its process, `allowed` are patterns of modules that jobs may name.
    """

    task = "python"

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        preload: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        grace_s: float = 10.0,
        allowed: Sequence[str] = (),
    ) -> None:
        self._limits = limits
        self._preload = preload
        self._code: CodeStore | None = None
        self.missing = MissingFunctions()
        self._known = describe_modules(preload)
        self._env = env
        self._grace_s = grace_s
        self._importable = Importable(allowed, preload)
        self._checked: set[str] = set()  # functions that jobs may name, bounded in number
        self._crews: Crews | None = None
        self._async: set[str] = set()
        self._was_async = False  # the last call
        self._leaving: set[str] = set()  # functions that may return files
        self._seq = 0
        self._ticks = 0
        self._ticking = False
        self._lone: set[PythonJob] = set()  # jobs in processes of their own
        self._stops: set[asyncio.Task[None]] = set()
        # jobs that were moved to processes of their own
        self._apart: set[asyncio.Task[None]] = set()

    def keep_code(self, code: CodeStore) -> None:
        """Makes all its processes import what the first one imported; call it before `attach`."""
        self._code = code
        for module in self._preload:
            code.keep(module)

    @property
    def functions(self) -> dict[str, Any]:
        """Returns what a worker reports about its functions."""
        return {**self._known, **self.missing.metadata}

    @property
    def import_path(self) -> str | None:
        """Returns its own PYTHONPATH, if it has one."""
        return (self._env or {}).get("PYTHONPATH")

    def changed_file(self) -> str | None:
        """Returns a file whose code its functions have run, and that has changed since."""
        return None if self._code is None else self._code.changed_file()

    def missing_files(self) -> dict[str, str | None]:
        """Returns the modules that it lacks, with the files where they would be found now."""
        code = self._code
        return {} if code is None else {name: code.file_of(name) for name in self.missing.modules}

    def attach(self, spawn: Spawn, slots: int) -> None:
        """Sets how to start processes, through the keeper, and how many for plain functions.

        Called once, in the loop, before the first job; the first processes start at once.
        """

        def make() -> Crew:
            launcher = ProcessLauncher(
                spawn, limits=self._limits, preload=self._preload, env=self._env, code=self._code
            )
            return Crew(launcher, slots, self._redirect, self._grace_s)

        self._crews = Crews(make)

    @property
    def processes(self) -> int:
        """Returns how many processes there are for plain functions."""
        return sum(crew.pool.processes for crew in self._crews or ())

    async def run(self, context: JobContext) -> Result:
        """Calls the function that the job names."""
        return await self._follow(context, self._admit)

    async def call(
        self, context: JobContext, function: str, args: list[Any], kwargs: dict[str, Any], task: str
    ) -> Result:
        """Calls a function whose path does not come from the job, which names a task."""
        version = context.version
        key = None if version is None else function_key(task, version)
        return await self._follow(
            context, lambda context: self._begin(context, function, args, kwargs, key)
        )

    def begin(self, context: JobContext, done: Callable[[Result], None]) -> None:
        """Starts a job as `run` does, without a task for each job."""
        try:
            self._admit(context).done = done
        except UNFIT as error:
            done(self._refused(context, error))

    async def _follow(
        self, context: JobContext, admit: Callable[[JobContext], PythonJob]
    ) -> Result:
        try:
            job = admit(context)
            if context.alone:
                return await self._run_alone(job)
        except UNFIT as error:
            return self._refused(context, error)
        try:
            return await job.future
        except asyncio.CancelledError:
            self._stop_apart(job)
            raise

    async def _run_alone(self, job: PythonJob) -> Result:
        code = self._code if job.context.own_mode else None
        self._lone.add(job)
        try:
            return await run_alone(job, self._limits, self._env or {}, code)
        finally:
            self._lone.discard(job)

    async def _settle_alone(self, job: PythonJob) -> None:
        """Runs a job in a process of its own, although it began in a shared one."""
        try:
            result = await self._run_alone(job)
        except (WindlassError, OSError) as error:
            result = STOPPED if job.context.stopping.is_set() else lost(str(error))
        job.settle(result)

    async def stack(self, context: JobContext) -> list[StackThread] | None:
        """Returns the stack of this attempt's function; None if it does not run here."""
        for job in (*self._lone, *self._jobs()):
            if job.context is context:
                if job.side is not None:
                    return await job.side.ask(job.call.seq)
                place = self._place(job)
                return None if place is None else await place.stack(job)
        return None

    def expect(self) -> None:
        """Wakes the process that would run the next job, because one may come soon.

        Waking takes as long as the commit that gives the job to this worker, and can be done at the
        same time.
        """
        crew = None if self._crews is None else self._crews.latest()
        if crew is not None and not crew.busy:
            (crew.loop if self._was_async else crew.pool).expect()

    async def close(self) -> None:
        """Ends all processes, and with them their calls."""
        if self._crews is None:
            return
        for task in self._stops:
            task.cancel()
        try:
            await self._crews.close()
        finally:
            self._crews = None
            if self._code is not None:
                self._code.close()

    def _admit(self, context: JobContext) -> PythonJob:
        args = read_args(context.args, "args")
        if args.function not in self._checked:
            self._importable.check(args.function)
            if len(self._checked) >= CHECKED:
                self._checked.clear()
            self._checked.add(args.function)
        key = function_key(args.function, context.version)
        return self._begin(context, args.function, args.args, args.kwargs, key)

    def _refused(self, context: JobContext, error: Exception) -> Result:
        """Returns the result of a call that cannot be made, at least not by this worker."""
        unable = isinstance(error, NotAllowed)
        if isinstance(error, NotAllowed):
            self.missing.note(function_key(error.function, context.version), error.why)
        too_large = f"expected arguments of at most 64 bits: {error}"
        message = error.message if isinstance(error, InvalidInput) else too_large
        return Result(
            outcome="failed", failure=FailureClass.CONFIGURATION, message=message,
            unable=unable, misfit=not unable,
        )  # fmt: skip

    def _begin(
        self, context: JobContext, function: str, args: list[Any], kwargs: dict[str, Any],
        key: str | None,
    ) -> PythonJob:  # fmt: skip
        self._seq += 1
        granted = context.granted or NOTHING
        call = Call(
            self._seq, context.job, context.attempt, context.workflow, function,
            args, kwargs, dict(context.secrets), granted.variables, granted.cpus, context.version,
            context.trace, context.isolation != WEAKEST,
        )  # fmt: skip
        noting = None if key is None else partial(self.missing.note, key)
        job = PythonJob(call, context, self._ticks, noting)
        if context.alone:
            return job
        if call.confined and function in self._leaving:
            self._redirect(job, alone=True)
            return job
        self._was_async = self._shares_loop(call)
        crew = self._attached.take(context.namespace)
        (crew.loop if self._was_async else crew.pool).add(job)
        if not self._ticking:
            self._ticking = True
            asyncio.get_running_loop().call_later(TICK_S, self._tick)
        return job

    def _shares_loop(self, call: Call) -> bool:
        """Returns whether the call runs beside others in one process, and so in one environment."""
        return call.function in self._async and not call.variables

    @property
    def _attached(self) -> Crews:
        if self._crews is None:
            raise RuntimeError("the executor is not attached to a worker")
        return self._crews

    def _jobs(self) -> list[PythonJob]:
        """Returns the jobs that run in shared processes."""
        return [job for crew in self._crews or () for job in crew.jobs()]

    def _place(self, job: PythonJob) -> Pool | Loop | None:
        """Returns where a call runs; None if that has ended."""
        crew = None if self._crews is None else self._crews.of(job)
        if crew is None:
            return None
        return crew.loop if self._shares_loop(job.call) else crew.pool

    def _redirect(self, job: PythonJob, alone: bool) -> None:
        """Moves a call whose function turned out to be async to the loop.

        `alone`: to a process of its own, where it finds a folder for the files that it returns.
        """
        if job.stopped:
            job.settle(STOPPED)
            return
        if alone:
            self._leaving.add(job.call.function)
            task = asyncio.get_running_loop().create_task(self._settle_alone(job))
            self._apart.add(task)
            task.add_done_callback(self._apart.discard)
            return
        self._async.add(job.call.function)
        self._was_async = True
        self._attached.take(job.context.namespace).loop.add(job)

    def _tick(self) -> None:
        """Watches long calls, and gives another process to calls that have waited long."""
        self._ticks += 1
        loop = asyncio.get_running_loop()
        if self._ticks % YOUNG_TICKS == 0:
            for job in self._jobs():
                if not job.old and self._ticks - job.born >= YOUNG_TICKS:
                    job.old = True
                    job.watch = loop.create_task(self._watch(job))
        for crew in self._crews or ():
            crew.pool.grow()
        self._ticking = self._crews is not None and self._crews.busy
        if self._ticking:
            loop.call_later(TICK_S, self._tick)

    async def _watch(self, job: PythonJob) -> None:
        await job.context.stopping.wait()
        self._stop_apart(job)

    def _stop_apart(self, job: PythonJob) -> None:
        """Stops a job, even if nobody waits for it any more."""
        if job.stopped:
            return
        job.stopped = True
        place = self._place(job)
        if place is None:
            return
        task = asyncio.get_running_loop().create_task(place.stop(job))
        self._stops.add(task)
        task.add_done_callback(self._stops.discard)


async def run_alone(
    job: PythonJob, limits: Limits | None, env: Mapping[str, str], code: CodeStore | None
) -> Result:
    """Runs one call in a process of its own, confined as its job requires.

    With `code`, it imports the modules that the worker keeps.
    """
    context = job.context
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    job.side, side = side_channel()
    with ExitStack() as given:
        ends = [side] if code is None else [side, code.connect()]
        socket.send_fds(ours, [b"!"], [given.enter_context(end).fileno() for end in ends])
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    process = await context.spawn(
        (sys.executable, *COMMAND), env=_environment(context, env),
        stdin=theirs.detach(), limits=limits,
    )  # fmt: skip
    try:
        writer.write(frame([job.call]))
        result = await _listen(job, reader, writer)
        end = await process.wait()
    finally:
        writer.close()
        job.side.close()
        job.side = None
    if result is None:
        return STOPPED if context.stopping.is_set() else died_result(end, alone=True)
    if result.failure == FailureClass.RESOURCE:
        return replace(result, message=f"{result.message}{hint(end)}")
    return result


def _environment(context: JobContext, env: Mapping[str, str]) -> Mapping[str, str]:
    """Returns its environment; it also imports from the directory of the agent."""
    seen = {**context.env, **env}
    return {**seen, PATH: os.pathsep.join(filter(None, (os.getcwd(), seen.get(PATH))))}


async def _listen(
    job: PythonJob, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Result | None:
    """Returns how the call ended; None if its process ended without a report."""

    def send(answer: Answer) -> None:
        if not writer.is_closing():
            writer.write(frame([answer]))

    frames, result = Frames(), None
    while data := await reader.read(READ):
        for body in frames.feed(data):
            for report in decode_reports(body):
                result = job.hear(report, send) or result
    return result

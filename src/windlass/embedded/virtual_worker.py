"""A worker that runs jobs in the calling thread, one after another: for tests of programs.

Each attempt has a log, files and programs of its own.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, cast

import msgspec

from windlass.domain.access.secrets import EVERYONE, advertise
from windlass.domain.matching.functions import function_key
from windlass.domain.matching.isolation import WEAKEST
from windlass.domain.tasks.python import read_args, read_call
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.domain.values.ids import shown_attempt
from windlass.domain.values.quantities import readable_duration
from windlass.embedded.immediate import run_async
from windlass.engine.engine import Engine
from windlass.executors.python.job import PythonJob, done_result, failed_result
from windlass.executors.python.known import MissingFunctions
from windlass.executors.python.local import LocalServer
from windlass.executors.python.messages import Answer, Ask, Call, Done, Failed
from windlass.executors.shell import ShellExecutor
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.sync import (
    Assignment,
    EnrolRequest,
    Finished,
    Released,
    SyncReply,
    SyncRequest,
)
from windlass.ports.clock import Clock
from windlass.ports.executor import Exit, Limits, Result
from windlass.ports.gateway import Holder
from windlass.tasks.current import JOBS, enter, find_current
from windlass.tasks.task import PYTHON, named_tasks
from windlass.worker.agent.direct import DirectGateway, enrol_with
from windlass.worker.agent.environment import without_own
from windlass.worker.agent.metadata import quick_facts
from windlass.worker.attempt.context import AgentContext
from windlass.worker.attempt.files import Files
from windlass.worker.attempt.records import finished, result_of
from windlass.worker.attempt.secrets import Mask
from windlass.worker.attempt.spec import AttemptSpec, read_spec
from windlass.worker.isolation.modes import Modes

PIECE: Final = 262_144  # bytes of a log in one call


class Place(NamedTuple):
    """What all attempts of the worker share."""

    gateway: DirectGateway
    clock: Clock
    result_limit: int
    log_limit: int


class VirtualAttempt:
    """What a running job needs from its agent; the rest of a context is not needed here."""

    isolation = WEAKEST

    def __init__(
        self, place: Place, holder: Holder, folder: Path, secrets: Mapping[str, str]
    ) -> None:
        self.scratch = folder
        self.args: Any = None
        self.stopping = asyncio.Event()
        self.mask = Mask(secrets.values()) if secrets else None
        self.secrets = dict(secrets)
        self._place = place
        self._holder = holder
        self._asked = 0
        self._log = bytearray()
        context = _FilesContext(
            place.gateway, place.clock, _OneFolder(folder), Modes(), place.result_limit
        )
        # It has what files ask of an agent.
        self._files = Files(cast(AgentContext, context), holder)
        self.fetch = self._files.fetch
        self.fill = self._files.fill

    # For functions

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        """Submits jobs of the function."""
        self._asked += 1
        if request.key is None:
            key = f"{self._holder.job}-{self._holder.attempt}-{self._asked}"
            request = msgspec.structs.replace(request, key=key)
        return await self._place.gateway.submit(self._holder, request)

    async def step(self, request: StepRequest) -> StepReply:
        """Stores a step of the function, or begins what it waits for."""
        return await self._place.gateway.step(self._holder, request)

    def alive(self) -> None:
        """Does nothing: there is no idle time here."""

    # For programs

    async def run_program(self, args: Any) -> Result:
        """Runs a program as a shell job does, without its limits."""
        self.args = args
        try:
            return await ShellExecutor().run(cast(Any, self))
        except (InvalidInput, OSError) as error:
            return result_of(error, ran=False)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        stdin: bytes | None,
        limits: Limits | None,
    ) -> "_Ended":
        """Runs a program to its end; its output goes to the log."""
        del limits
        everything = {**without_own(os.environ), **env, **self.secrets}
        process = await asyncio.create_subprocess_exec(
            *argv, env=everything, cwd=self.scratch, stdin=PIPE, stdout=PIPE, stderr=STDOUT
        )
        output, _ = await process.communicate(stdin)
        self.log(output)
        code = process.returncode or 0
        return _Ended(Exit(code) if code >= 0 else Exit(None, -code))

    async def upload(self, patterns: Sequence[str]) -> None:
        """Keeps files as artifacts."""
        await self._files.upload(patterns, self._note_missing)

    def _note_missing(self, pattern: str) -> None:
        self.log(f"no file matches {pattern}\n".encode())

    # Its log and its result

    def log(self, data: bytes) -> None:
        """Adds to its log."""
        self._log += data

    @contextmanager
    def printing(self) -> Iterator[None]:
        """Copies printed output to the log; pytest captures it too."""
        out, err = (_Printing(stream, self.log) for stream in (sys.stdout, sys.stderr))
        with redirect_stdout(cast(Any, out)), redirect_stderr(cast(Any, err)):
            yield

    async def end(self, result: Result) -> Result:
        """Writes the log; returns the result with large parts and files of it as artifacts."""
        try:
            await self._write_log()
            if result.leaves_more(self._place.result_limit):
                return await self._files.keep(result, self.mask)
        except InvalidInput as error:
            return result_of(error, ran=True)
        except Conflict as error:
            if error.code != "lease_lost":
                raise
        return result

    async def _write_log(self) -> None:
        data = bytes(self._log)
        if self.mask is not None:
            masker = self.mask.stream()
            data = masker.feed(data) + masker.flush()
        data = data[: self._place.log_limit or len(data)]
        if not data:
            return
        for start in range(0, len(data), PIECE):
            piece = data[start : start + PIECE]
            await self._place.gateway.append_log(self._holder, start, piece)
        await self._place.gateway.end_log(self._holder, len(data), "committed")


class _FilesContext(NamedTuple):
    gateway: DirectGateway
    clock: Clock
    scratch: "_OneFolder"
    isolation: Modes
    result_limit: int


class _OneFolder:
    """Implements what files ask of `Scratch`: a folder that its owner removes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self) -> Path:
        return self._folder


class _Ended:
    """A process that has ended."""

    def __init__(self, end: Exit) -> None:
        self._end = end

    async def wait(self) -> Exit:
        return self._end


class _Printing:
    """A stream that copies output to the log of the running job, not of one that waits for it."""

    def __init__(self, stream: Any, log: Callable[[bytes], None]) -> None:
        self.stream: Any = stream.stream if isinstance(stream, _Printing) else stream
        self._log = log

    def write(self, text: str) -> int:
        self._log(text.encode("utf-8", "replace"))
        return int(self.stream.write(text))

    def writelines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


SLOTS: Final = 100  # jobs may wait for others inside each other
NAME: Final = "virtual"

Run = Callable[[Coroutine[Any, Any, Any]], Any]  # runs a coroutine of the engine to its end


class VirtualWorker:
    """Claims jobs and runs them where it is called, so that debuggers and patches reach them.

    `run` runs coroutines in the loop of the engine, from any thread.
    """

    def __init__(self, engine: Engine, place: Place, run: Run) -> None:
        self.secrets: dict[str, str] = {}
        self.metadata: dict[str, Any] = {}
        self._engine = engine
        self._place = place
        self._run = run
        self._missing = MissingFunctions()
        self._running = 0
        self._worker = self._incarnation = self._seq = self._received = 0

    @property
    def busy(self) -> bool:
        """Whether a job is running; if so, it is the caller."""
        return self._running > 0

    async def enrol(self) -> None:
        """Begins to work."""
        request = EnrolRequest(name=NAME, slots=SLOTS, metadata=self._described(), takeover=True)
        reply = await enrol_with(self._engine, request, self._engine.config.log_limit)
        self._worker, self._incarnation = reply.worker, reply.incarnation

    async def beat(self) -> None:
        """Says that it is alive."""
        await self._sync()

    def work(self) -> bool:
        """Runs the next job, if there is one; returns whether there was."""
        reply: SyncReply = self._run(self._sync(want=1, metadata=self._described()))
        for assignment in reply.jobs:
            self._received = max(self._received, assignment.lease)
            self._running += 1
            try:
                report = self._report(assignment)
            finally:
                self._running -= 1
            kind = "released" if isinstance(report, Released) else "finished"
            self._run(self._sync(metadata=self._described(), **{kind: (report,)}))
            self._run(self._engine.settled())
        return bool(reply.jobs)

    def _described(self) -> dict[str, Any]:
        secrets = advertise((EVERYONE, name) for name in self.secrets)
        return {**quick_facts(), **secrets, **self._missing.metadata, **self.metadata}

    def _sync(self, **fields: Any) -> Coroutine[Any, Any, SyncReply]:
        self._seq += 1
        request = SyncRequest(
            incarnation=self._incarnation, seq=self._seq, received=self._received,
            epoch=self._engine.catalog.epoch, **fields,
        )  # fmt: skip
        return self._engine.sync(self._worker, request)

    def _report(self, assignment: Assignment) -> Finished | Released:
        key = assignment.job, assignment.attempt
        spec = read_spec(assignment.spec)
        secrets = {name: self.secrets[name] for name in spec.secrets if name in self.secrets}
        holder = Holder(self._worker, self._incarnation, *key)
        began = self._place.clock.now_ms()
        with TemporaryDirectory(prefix="windlass-") as folder:
            attempt = VirtualAttempt(self._place, holder, Path(folder), secrets)
            try:
                if spec.has_files:
                    spec.args = self._run(attempt.fill(spec.args))
                with attempt.printing():
                    result = self._execute(assignment, spec, attempt)
            except InvalidInput as error:
                result = result_of(error, ran=False)
            took_ms = self._place.clock.now_ms() - began
            result = self._run(attempt.end(_in_time(result, assignment.timeout_ms, took_ms)))
        if result.unable:
            return Released(*key, reason=result.message, unable=True)
        return finished(key, result, attempt.mask)

    def _execute(
        self, assignment: Assignment, spec: AttemptSpec, attempt: VirtualAttempt
    ) -> Result:
        args: Any = msgspec.json.decode(spec.args)
        if spec.task == "shell":
            result: Result = self._run(attempt.run_program(args))
            return result
        if spec.task == PYTHON:
            call = read_args(args, "args")
            asked: str | None = function_key(call.function, spec.version)
            made = _call(assignment, spec, call.function, call.args, call.kwargs)
            return self._call(made, attempt, asked)
        task = named_tasks().get(spec.task)
        if task is None:
            raise InvalidInput("task", "python, shell or a task that was imported", spec.task)
        given = read_call(args)
        asked = None if spec.version is None else function_key(spec.task, spec.version)
        made = _call(assignment, spec, task.path, given.args, given.kwargs)
        return self._call(made, attempt, asked)

    def _call(self, call: Call, attempt: VirtualAttempt, asked: str | None) -> Result:
        call = msgspec.structs.replace(call, secrets=attempt.secrets)
        noting = None if asked is None else partial(self._missing.note, asked)
        outer = find_current()
        job = PythonJob(call, cast(Any, attempt), 0, noting)
        try:
            report = _Server(self._run, job).call(call)
        finally:
            enter(outer, alone=True)  # a job may wait for another one
        if isinstance(report, Failed):
            return failed_result(job, report)
        return done_result(report if isinstance(report, Done) else Done(1))


def _in_time(result: Result, timeout_ms: int | None, took_ms: int) -> Result:
    """Returns the result, unless a worker would have stopped the job before."""
    if timeout_ms is None or took_ms <= timeout_ms:
        return result
    message = f"Timed out after {readable_duration(timeout_ms)}"
    return Result(outcome="timed_out", message=message)


def _call(
    assignment: Assignment, spec: AttemptSpec, path: str, args: list[Any], kwargs: dict[str, Any]
) -> Call:
    return Call(
        1, assignment.job, shown_attempt(assignment.attempt, assignment.handed_back), spec.workflow,
        path, args, kwargs, {}, version=spec.version,
    )  # fmt: skip


class _Server(LocalServer):
    """Runs one function; its requests go to the engine."""

    def __init__(self, run: Run, job: PythonJob) -> None:
        super().__init__()
        self._run_in_engine = run
        self._job = job

    def ask(self, seq: int, body: bytes, what: str = JOBS) -> Answer:
        """Submits jobs and stores steps for the function."""
        asked = self._job.answer(Ask(seq, 1, body, what or JOBS))
        answer: Answer = self._run_in_engine(asked)
        return answer

    def run_async(self, call: Coroutine[Any, Any, object]) -> object:
        """Runs an async function in a loop of its own, also where the test has one."""
        return run_async(call)

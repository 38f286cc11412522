"""A worker that runs jobs in the calling thread, one after another: for tests of programs."""

import os
import subprocess
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import msgspec

from windlass.api.children import Children
from windlass.api.steps.attempt import AttemptSteps
from windlass.client.blocking.loop_thread import LoopThread
from windlass.domain.access.secrets import EVERYONE, advertise
from windlass.domain.matching.functions import function_key
from windlass.domain.tasks.function import read_call
from windlass.domain.tasks.python import read_args
from windlass.domain.tasks.shell import read_args as read_shell
from windlass.domain.values.errors import InvalidInput
from windlass.embedded.in_caller import answer_to
from windlass.engine.engine import Engine
from windlass.executors.python.code.missing import MissingFunctions
from windlass.executors.python.job import Job, done_result, failed_result
from windlass.executors.python.local import LocalServer
from windlass.executors.python.messages import Answer, Ask, Call, Done, Failed
from windlass.ports.executor import Result
from windlass.ports.gateway import Holder
from windlass.tasks.current import JOBS, enter, find_current
from windlass.tasks.task import PYTHON, named_tasks
from windlass.wire.enrolment import EnrolRequest
from windlass.wire.jobs import SubmitReply, SubmitRequest
from windlass.wire.steps import StepReply, StepRequest
from windlass.wire.sync import Assignment, Finished, Released, SyncReply, SyncRequest
from windlass.worker.agent.direct import enrol_with
from windlass.worker.agent.environment import without_own
from windlass.worker.agent.metadata import quick_facts
from windlass.worker.attempt.outcome import finished, result_of
from windlass.worker.attempt.spec import AttemptSpec, read_spec

SLOTS: Final = 100  # jobs may wait for others inside each other
NAME: Final = "virtual"

Run = Callable[[Coroutine[Any, Any, Any]], Any]  # runs a coroutine of the engine to its end


class VirtualWorker:
    """Claims jobs and runs them where it is called, so that debuggers and patches reach them.

    `run` runs coroutines in the loop of the engine, from any thread.
    """

    def __init__(self, engine: Engine, run: Run) -> None:
        self.secrets: dict[str, str] = {}
        self.metadata: dict[str, Any] = {}
        self._engine = engine
        self._run = run
        self._missing = MissingFunctions()
        self._running = 0
        self._worker = self._incarnation = self._seq = self._received = 0

    @property
    def busy(self) -> bool:
        """Whether a job runs just now, which then is the caller."""
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
        try:
            result = self._execute(assignment, read_spec(assignment.spec))
        except InvalidInput as error:
            result = result_of(error, ran=False)
        if result.unable:
            return Released(*key, reason=result.message, unable=True)
        return finished(key, result, None)

    def _execute(self, assignment: Assignment, spec: AttemptSpec) -> Result:
        args: Any = msgspec.json.decode(spec.args)
        if spec.task == "shell":
            return _run_program(args)
        if spec.task == PYTHON:
            call = read_args(args, "args")
            asked: str | None = function_key(call.function, spec.version)
            return self._call(assignment, spec, call.function, call.args, call.kwargs, asked)
        task = named_tasks().get(spec.task)
        if task is None:
            raise InvalidInput("task", "python, shell or a task that was imported", spec.task)
        given = read_call(args)
        asked = None if spec.version is None else function_key(spec.task, spec.version)
        return self._call(assignment, spec, task.path, given.args, given.kwargs, asked)

    def _call(
        self, assignment: Assignment, spec: AttemptSpec, path: str, args: list[Any],
        kwargs: dict[str, Any], asked: str | None,
    ) -> Result:  # fmt: skip
        secrets = {name: self.secrets[name] for name in spec.secrets if name in self.secrets}
        call = Call(
            1, assignment.job, assignment.attempt, spec.workflow, path, args, kwargs, secrets,
            version=spec.version,
        )  # fmt: skip
        noting = None if asked is None else partial(self._missing.note, asked)
        holder = Holder(self._worker, self._incarnation, assignment.job, assignment.attempt)
        outer = find_current()
        with TemporaryDirectory(prefix="windlass-") as folder:
            context = _Context(self._engine, holder, Path(folder))
            job = Job(call, cast(Any, context), 0, noting)
            try:
                report = _Server(self._run, job).call(call)
            finally:
                enter(outer, alone=True)  # a job may wait for another one
        if isinstance(report, Failed):
            return failed_result(job, report)
        return done_result(report if isinstance(report, Done) else Done(1))


class _Context:
    """What a running function asks of its agent; the rest of a context is not asked for here."""

    def __init__(self, engine: Engine, holder: Holder, folder: Path) -> None:
        self.scratch = folder
        self._engine = engine
        self._holder = holder
        self._asked = 0

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        """Submits jobs of the function."""
        self._asked += 1
        if request.key is None:
            key = f"{self._holder.job}-{self._holder.attempt}-{self._asked}"
            request = msgspec.structs.replace(request, key=key)
        return await Children(self._engine).submit(self._holder, request)

    async def step(self, request: StepRequest) -> StepReply:
        """Stores a step of the function, or begins what it waits for."""
        return await AttemptSteps(self._engine).step(self._holder, request)

    def alive(self) -> None:
        """Does nothing: there is no idle time here."""


class _Server(LocalServer):
    """Runs one function; what it asks for goes to the engine."""

    def __init__(self, run: Run, job: Job) -> None:
        super().__init__()
        self._run_in_engine = run
        self._job = job

    def ask(self, seq: int, body: bytes, what: str = JOBS) -> Answer:
        """Submits jobs and stores steps for the function."""
        asked = answer_to(self._job, Ask(seq, 1, body, what or JOBS))
        answer: Answer = self._run_in_engine(asked)
        return answer

    def run_async(self, call: Coroutine[Any, Any, object]) -> object:
        """Runs an async function in a loop of its own, also where the test has one."""
        thread = LoopThread()
        try:
            return thread.run(call)
        finally:
            thread.close()


def _run_program(args: Any) -> Result:
    """Runs a program as a shell job does, without its limits and files."""
    shell = read_shell(args)
    env = {**without_own(os.environ), **shell.env}
    try:
        done = subprocess.run(shell.argv, input=shell.stdin, env=env, text=True, check=False)
    except OSError as error:
        return result_of(error, ran=False)
    if done.returncode == 0:
        return Result(exit_code=0)
    message = f"exit code {done.returncode}"
    return Result(outcome="failed", failure="execution", exit_code=done.returncode, message=message)

"""A worker that runs jobs in the calling thread, one after another: for tests of programs."""

from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import msgspec

from windlass.domain.access.secrets import EVERYONE, advertise
from windlass.domain.matching.functions import function_key
from windlass.domain.tasks.python import read_args, read_call
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.ids import shown_attempt
from windlass.domain.values.quantities import readable_duration
from windlass.embedded.in_caller import answer_to, run_async
from windlass.embedded.virtual_attempt import Place, VirtualAttempt
from windlass.engine.engine import Engine
from windlass.executors.python.job import Job, done_result, failed_result
from windlass.executors.python.known import MissingFunctions
from windlass.executors.python.local import LocalServer
from windlass.executors.python.messages import Answer, Ask, Call, Done, Failed
from windlass.messages.enrolment import EnrolRequest
from windlass.messages.sync import Assignment, Finished, Released, SyncReply, SyncRequest
from windlass.ports.executor import Result
from windlass.ports.gateway import Holder
from windlass.tasks.current import JOBS, enter, find_current
from windlass.tasks.task import PYTHON, named_tasks
from windlass.worker.agent.direct import enrol_with
from windlass.worker.agent.metadata import quick_facts
from windlass.worker.attempt.records import finished, result_of
from windlass.worker.attempt.spec import AttemptSpec, read_spec

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
        job = Job(call, cast(Any, attempt), 0, noting)
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
        return run_async(call)

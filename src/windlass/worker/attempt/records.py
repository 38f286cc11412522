"""What is reported about attempts: to the server how they ended, and the worker's log and spans."""

import errno
import re

import msgspec
import structlog

from windlass.domain.job.kinds import program_or_task
from windlass.domain.lifecycle.traces import Trace, attempt_trace, parse_trace
from windlass.domain.values.errors import InvalidInput, NotFound, WindlassError
from windlass.domain.values.ids import shown_attempt
from windlass.messages.jobs import SubmitRequest
from windlass.messages.sync import Assignment, Finished, Released
from windlass.ports.clock import Clock
from windlass.ports.executor import Result
from windlass.tracing.current import VARIABLE, with_trace
from windlass.tracing.exporting import LOST, Ended, Made, Tracing, attempt_span, end_tracing
from windlass.worker.attempt.secrets import Mask
from windlass.worker.attempt.spec import AttemptSpec
from windlass.worker.core.ports import Key, Report
from windlass.worker.isolation.confinement import ConfinementFailed
from windlass.worker.keeper.kept_process import SpawnFailed

MAX_LINES = 100  # lines per second, for starts and for successful ends each
SECOND_MS = 1_000
STARTED = "job started"
ENDED = "job ended"  # the line about the end of an attempt

MESSAGE_LIMIT = 4_000
QUOTE_LIMIT = 300  # characters of the last line of a log
NOTE = "[windlass] "  # begins a line that is ours
UNSTOPPED = Result(outcome="failed", message="did not stop in time")
STARVED = frozenset({errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE, errno.ENOSPC})

_COLOUR = re.compile(r"\x1b(\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

log = structlog.get_logger("windlass.worker")


class Records:
    """Records the attempts of a worker."""

    def __init__(self, clock: Clock, tracing: Tracing | None = None) -> None:
        self.clock = clock
        self.tracing = tracing
        self.starts = _Room("more jobs started")
        self.good_ends = _Room("more jobs ended")

    def begin(self, assignment: Assignment, spec: AttemptSpec) -> "Record":
        """Returns the record of an attempt that begins now."""
        return Record(self, assignment, spec)

    def close(self) -> None:
        """Sends the last spans."""
        end_tracing(self.tracing)


class _Room:
    """Lets a limited number of lines pass per second, and sums up the rest."""

    def __init__(self, rest: str) -> None:
        """Takes in `rest` the line that says how many were left out."""
        self._rest = rest
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def is_left(self, now: int) -> bool:
        """Returns whether this second has room for another line."""
        if now // SECOND_MS != self._second:
            if self._left_out:
                log.info(self._rest, jobs=self._left_out)
            self._second, self._lines, self._left_out = now // SECOND_MS, 0, 0
        self._lines += 1
        if self._lines <= MAX_LINES:
            return True
        self._left_out += 1
        return False


class Record:
    """One attempt: when it began, and its trace."""

    __slots__ = ("_began", "_job", "_of", "_parent", "_shown", "_spec", "_stored", "trace")

    def __init__(self, of: Records, assignment: Assignment, spec: AttemptSpec) -> None:
        self._of = of
        self._job = assignment.job, assignment.attempt
        self._shown = shown_attempt(assignment.attempt, assignment.handed_back)
        self._spec = spec
        self._stored = assignment.spec
        self._began = of.clock.now_ms()
        self.trace: str | None = spec.trace  # the span context for what the job does
        self._parent: Trace | None = None
        if spec.trace is not None and of.tracing is not None:
            self._parent = parse_trace(spec.trace)
        if self._parent is not None:
            self.trace = attempt_trace(self._parent, *self._job).text
        if of.starts.is_left(self._began):
            self._log_start()

    def env(self) -> dict[str, str]:
        """Returns the variables that pass the trace on to programs of the job."""
        env = {"WINDLASS_JOB": str(self._job[0]), "WINDLASS_ATTEMPT": str(self._shown)}
        if self._spec.workflow is not None:
            env["WINDLASS_WORKFLOW"] = str(self._spec.workflow)
        if self.trace is not None:
            env[VARIABLE] = self.trace
        return env

    def adopt(self, request: SubmitRequest) -> SubmitRequest:
        """Returns a submission of the job, with its trace for jobs that have none."""
        if self.trace is None:
            return request
        return msgspec.structs.replace(request, jobs=with_trace(request.jobs, self.trace))

    def end(self, report: Report | None) -> None:
        """Records how it ended; None: its lease was lost."""
        now = self._of.clock.now_ms()
        outcome, failure, reason = _end_of(report)
        if outcome != "completed" or self._of.good_ends.is_left(now):
            self._log(now, outcome, failure, reason)
        tracing = self._of.tracing
        if self._parent is not None and tracing is not None:
            tracing.add(self._span(now, outcome, failure))

    def _log_start(self) -> None:
        job, task, queue = self._job[0], self._spec.task, self._spec.queue
        log.info(STARTED, job=job, attempt=self._shown, task=task, queue=queue, **self._ids())

    def _log(self, now: int, outcome: str, failure: str | None, reason: str | None) -> None:
        facts = {"failure": failure, "reason": reason, **self._ids()}
        write = log.warning if outcome in ("failed", "timed_out", LOST) else log.info
        write(
            ENDED,
            job=self._job[0],
            attempt=self._shown,
            outcome=outcome,
            seconds=(now - self._began) / 1000,
            **{name: value for name, value in facts.items() if value},
        )

    def _span(self, now: int, outcome: str, failure: str | None) -> Made:
        assert self._parent is not None
        spec, task = self._spec, program_or_task(bytes(self._stored))
        return attempt_span(
            self._parent,
            Ended(*self._job, spec.queue, task, spec.workflow, self._began, now, outcome, failure),
        )

    def _ids(self) -> dict[str, str]:
        """Returns the id of the trace, for lines of the log, if this worker traces."""
        return {} if self._parent is None else {"trace_id": self._parent.trace}


def _end_of(report: Report | None) -> tuple[str, str | None, str | None]:
    """Returns the outcome, the class of the failure, and the reason."""
    if isinstance(report, Finished):
        return report.outcome, report.failure, report.message
    if isinstance(report, Released):
        return "released", None, report.reason
    return LOST, None, "its lease was lost"


def result_of(error: Exception, ran: bool) -> Result:
    """Returns the result of an executor that raised; `ran`: a process was started before."""
    if isinstance(error, SpawnFailed):
        failure = "resource" if error.number in STARVED else "configuration"
        return Result(outcome="failed", failure=failure, message=error.message)
    if isinstance(error, ConfinementFailed):
        return Result(outcome="failed", failure=error.failure, message=error.message)
    if isinstance(error, InvalidInput):
        return Result(
            outcome="failed", failure="configuration", message=error.message, misfit=not ran
        )
    if isinstance(error, NotFound):  # not this worker's fault, and it would fail here again
        return Result(outcome="failed", failure="configuration", message=error.message)
    if isinstance(error, OSError):
        failure = "resource" if error.errno in STARVED else "execution"
        return Result(outcome="failed", failure=failure, message=str(error))
    if isinstance(error, WindlassError):
        return Result(outcome="failed", failure="network", message=error.message)
    name = type(error).__name__
    return Result(outcome="failed", failure="execution", message=f"{name}: {error}")


def with_last_line(result: Result, end: bytes) -> Result:
    """Returns a result whose message ends with the last line that its program wrote."""
    text = _CONTROL.sub(" ", _COLOUR.sub("", end.decode(errors="replace").replace("\r", "\n")))
    lines = [line.strip() for line in text.splitlines() if not line.startswith(NOTE)]
    last = next((line for line in reversed(lines) if line), "")
    if not last:
        return result
    return msgspec.structs.replace(result, message=f"{result.message}: {last[:QUOTE_LIMIT]}")


def finished(key: Key, result: Result, mask: Mask | None) -> Finished:
    """Returns the report of a result: without secrets, bounded, and valid JSON."""
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
    raised = result.raised
    if mask is not None and raised is not None:
        raised = raised.changed(mask.text)
    return Finished(
        *key, outcome, result.exit_code, failure, message, value, result.misfit, raised,
        result.own_limit,
    )  # fmt: skip

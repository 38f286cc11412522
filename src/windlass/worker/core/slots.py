"""What an agent holds: attempts that wait, run or have ended and are not reported yet."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import structlog

from windlass.ports.executor import Executor
from windlass.wire.sync import (
    Assignment,
    Finished,
    Held,
    Refusal,
    Released,
    Started,
    Stop,
)
from windlass.worker.attempt.attempt import Attempt, Report, Surroundings, Why, read_spec

Key = tuple[int, int]  # job, attempt

LOOK_S = 0.5
LOGS_BEHIND = 64  # logs of ended attempts, beyond the slots, that may wait to be sent

log = structlog.get_logger()


class Slots:
    """The attempts of one incarnation. `news` is called when there is something to report."""

    def __init__(
        self,
        count: int,
        executors: Mapping[str, Executor],
        around: Surroundings,
        news: Callable[[], None],
    ) -> None:
        self.received = 0  # the highest lease number seen
        self.careful = False  # a job had to be declined: from now on look before starting
        self._count = count
        self._executors = executors
        self._around = around
        self._news = news
        self._waiting: dict[Key, Assignment] = {}  # assigned, not yet asked to start
        self._starting: dict[Key, Assignment] = {}  # `started` was said, not yet answered
        self._running: dict[Key, Attempt] = {}
        self._flushing: set[asyncio.Task[None]] = set()
        self._reports: dict[Key, Report] = {}
        self._timing = False

    # What a sync says

    @property
    def free(self) -> int:
        """How many jobs could be started now."""
        held = len(self._waiting) + len(self._starting) + len(self._running)
        # Logs that nobody takes must not pile up, however short their jobs are.
        behind = max(0, len(self._flushing) - self._count - LOGS_BEHIND)
        return max(0, self._count - held - behind)

    @property
    def busy(self) -> bool:
        """Whether anything is left to do or to report."""
        return bool(self._waiting or self._starting or self._running or self._reports)

    async def flushed(self, patience_s: float) -> None:
        """Wait for the logs of attempts that have ended."""
        if self._flushing:
            await asyncio.wait(self._flushing, timeout=patience_s)

    def ask_to_start(self) -> dict[Key, Assignment]:
        """Assigned jobs that a sync names as started; they are launched when it is answered."""
        self._starting.update(self._waiting)
        self._waiting.clear()
        return dict(self._starting)

    def reports(self) -> dict[Key, Report]:
        """Everything that was not answered yet."""
        return dict(self._reports)

    def held(self) -> tuple[Held, ...]:
        """What the agent believes to hold."""
        return tuple(Held(*key) for key in (*self._waiting, *self._starting, *self._running))

    # What a reply says

    def settle(self, started: Mapping[Key, Assignment], reports: Mapping[Key, Report]) -> None:
        """These were answered: launch the ones, forget the others."""
        for key, report in reports.items():
            if self._reports.get(key) is report:
                del self._reports[key]
        for key, assignment in started.items():
            if self._starting.pop(key, None) is not None:
                self._launch(assignment)

    def lose(self, refusal: Refusal) -> None:
        """`lease_lost`: kill the process, report nothing."""
        key = refusal.job, refusal.attempt
        log.info("lease_lost", job=refusal.job, attempt=refusal.attempt, reason=refusal.reason)
        self._waiting.pop(key, None)
        self._starting.pop(key, None)
        self._reports.pop(key, None)
        attempt = self._running.get(key)
        if attempt is not None:
            attempt.stop("lost")

    def take(self, assignment: Assignment) -> None:
        """A job was given to this agent; one it knows already was only sent again."""
        key = assignment.job, assignment.attempt
        self.received = max(self.received, assignment.lease)
        if any(key in known for known in (self._waiting, self._starting, self._running,
                                          self._reports)):  # fmt: skip
            return
        if assignment.state == "assigned":
            self._consider(key, assignment)
        elif assignment.state == "running":
            self._launch(assignment)
        else:
            self._reports[key] = Finished(*key, outcome="canceled")

    def stop(self, stop: Stop) -> None:
        """The server wants this attempt to end."""
        key = stop.job, stop.attempt
        attempt = self._running.get(key)
        if attempt is not None:
            attempt.stop("canceled", stop.reason)
        elif key not in self._reports:
            self._waiting.pop(key, None)
            self._starting.pop(key, None)
            self._reports[key] = Released(*key)

    def stop_all(self, why: Why, reason: str | None) -> None:
        """End everything, for no fault of the jobs."""
        for attempt in list(self._running.values()):
            attempt.stop(why, reason)
        self.give_back_waiting()

    def give_back_waiting(self) -> None:
        """Hand back what was not started."""
        for key in self._waiting:
            self._reports[key] = Released(*key)
        self._waiting.clear()

    # Attempts

    def _consider(self, key: Key, assignment: Assignment) -> None:
        """Take an assigned job, or decline it: then it stays away from this worker a while."""
        reason = self._misfit(assignment)
        if reason is None:
            self._waiting[key] = assignment
        else:
            self._reports[key] = Released(*key, reason=reason)

    def _misfit(self, assignment: Assignment) -> str | None:
        """Why this agent cannot run a job, whatever the server took it for."""
        spec = read_spec(assignment.spec)
        if spec.task not in self._executors:
            return f"this worker does not run {spec.task} jobs"
        missing = self._around.secrets.missing(spec.secrets, spec.namespace)
        return f"this worker lacks the secrets {', '.join(missing)}" if missing else None

    def _launch(self, assignment: Assignment) -> None:
        key = assignment.job, assignment.attempt
        try:
            spec = read_spec(assignment.spec)
        except msgspec.DecodeError as error:
            self._reports[key] = Finished(
                *key, outcome="failed", failure="configuration", message=str(error), misfit=True
            )
            return
        executor = self._executors.get(spec.task)
        lacking = spec.secrets and self._around.secrets.missing(spec.secrets, spec.namespace)
        if executor is None or lacking:
            # It counts as running, so it cannot be declined: give it back, and look at
            # what comes before it is started, for then it can.
            self.careful = True
            self._reports[key] = Released(*key)
            return
        attempt = self._running[key] = Attempt(self._around, assignment, spec, self._ended)
        if not self._timing:
            self._timing = True
            asyncio.get_running_loop().call_later(LOOK_S, self._look_at_times)
        attempt.start(executor)

    def _look_at_times(self) -> None:
        """One timer for all long timeouts, while anything runs."""
        loop = asyncio.get_running_loop()
        self._timing = bool(self._running)
        if self._timing:
            loop.call_later(LOOK_S, self._look_at_times)
            now = loop.time()
            for attempt in list(self._running.values()):
                attempt.check_time(now)

    def _ended(self, attempt: Attempt, report: Report | None) -> None:
        self._running.pop(attempt.key, None)
        task = attempt.flushing
        if task is not None:
            self._flushing.add(task)
            task.add_done_callback(self._flushed_one)
        if report is not None:
            self._reports[attempt.key] = report
        self._news()

    def _flushed_one(self, task: "asyncio.Task[None]") -> None:
        self._flushing.discard(task)
        if len(self._flushing) == self._count + LOGS_BEHIND:
            self._news()

    def started(self, keys: Mapping[Key, Assignment]) -> tuple[Started, ...]:
        return tuple(Started(*key) for key in keys)

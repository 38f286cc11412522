"""Tracks the attempts of an agent: those that wait, run, or have ended and are not reported yet."""

import asyncio
from collections.abc import Callable, Mapping

import structlog

from windlass.messages.sync import (
    Assignment,
    Finished,
    Held,
    Refusal,
    Released,
    StackWanted,
    Started,
    Stop,
)
from windlass.worker.core.ports import Key, Report, RunningAttempt, Starter, StopReason

LOOK_S = 0.5
LOGS_BEHIND = 64  # logs of ended attempts, beyond the slots, that may wait to be sent

log = structlog.get_logger()


class Slots:
    """The attempts of one incarnation. Calls `news` when there is something to report."""

    def __init__(self, count: int, starter: Starter, news: Callable[[], None]) -> None:
        self.received = 0  # the highest lease number seen
        self.careful = False  # a job had to be declined: from now on, check before starting
        self._count = count
        self._starter = starter
        self._news = news
        self._waiting: dict[Key, Assignment] = {}  # assigned, start not requested yet
        self._starting: dict[Key, Assignment] = {}  # start requested, not yet answered
        self._running: dict[Key, RunningAttempt] = {}
        self._flushing: dict[asyncio.Task[None], None] = {}
        self._reports: dict[Key, Report] = {}
        self._timing = False
        self._all_ended: asyncio.Event | None = None  # someone waits for all to end

    # For the sync request

    @property
    def free(self) -> int:
        """Returns how many jobs could be started now."""
        held = len(self._waiting) + len(self._starting) + len(self._running)
        # Logs that nobody takes must not pile up, however short their jobs are.
        behind = max(0, len(self._flushing) - self._count - LOGS_BEHIND)
        return max(0, self._count - held - behind)

    @property
    def busy(self) -> bool:
        """Returns whether anything is left to do or to report."""
        return bool(self._waiting or self._starting or self._running or self._reports)

    async def flushed(self, patience_s: float) -> None:
        """Waits for the logs of attempts that have ended."""
        if self._flushing:
            await asyncio.wait(self._flushing, timeout=patience_s)

    async def all_ended(self, patience_s: float) -> bool:
        """Waits until no attempt runs; returns whether that is so."""
        if self._running:
            self._all_ended = asyncio.Event()
            waiting = asyncio.get_running_loop().create_task(self._all_ended.wait())
            await asyncio.wait((waiting,), timeout=patience_s)
            waiting.cancel()
        return not self._running

    def finished(self) -> tuple[Finished, ...]:
        """Returns the results that no server has taken."""
        return tuple(report for report in self._reports.values() if isinstance(report, Finished))

    def ask_to_start(self) -> dict[Key, Assignment]:
        """Returns the jobs that a sync names as started; they are launched when it is answered."""
        self._starting.update(self._waiting)
        self._waiting.clear()
        return dict(self._starting)

    def reports(self) -> dict[Key, Report]:
        """Returns every report that was not answered yet."""
        return dict(self._reports)

    def held(self) -> tuple[Held, ...]:
        """Returns what the agent believes it holds."""
        return tuple(Held(*key) for key in (*self._waiting, *self._starting, *self._running))

    # From the sync reply

    def settle(self, started: Mapping[Key, Assignment], reports: Mapping[Key, Report]) -> None:
        """Launches the jobs that the server let start, and forgets the reports it has taken."""
        for key, report in reports.items():
            if self._reports.get(key) is report:
                del self._reports[key]
        for key, assignment in started.items():
            if self._starting.pop(key, None) is not None:
                self._launch(assignment)

    def lose(self, refusal: Refusal) -> None:
        """Kills an attempt whose lease is lost, and reports nothing."""
        key = refusal.job, refusal.attempt
        log.info("lease_lost", job=refusal.job, attempt=refusal.attempt, reason=refusal.reason)
        self._waiting.pop(key, None)
        self._starting.pop(key, None)
        self._reports.pop(key, None)
        attempt = self._running.get(key)
        if attempt is not None:
            attempt.stop("lost")

    def take(self, assignment: Assignment) -> None:
        """Takes a job from the server; ignores one that was only sent again."""
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
        """Ends an attempt at the server's request."""
        key = stop.job, stop.attempt
        attempt = self._running.get(key)
        if attempt is not None:
            attempt.stop("canceled", stop.reason)
        elif key not in self._reports:
            self._waiting.pop(key, None)
            self._starting.pop(key, None)
            self._reports[key] = Released(*key)

    def show_stack(self, wanted: StackWanted) -> None:
        """Makes an attempt report its stack; one that has ended reports its end instead."""
        attempt = self._running.get((wanted.job, wanted.attempt))
        if attempt is not None:
            attempt.show_stack(wanted.request)

    def stop_all(self, why: StopReason, reason: str | None) -> None:
        """Ends every attempt, through no fault of the jobs."""
        for attempt in list(self._running.values()):
            attempt.stop(why, reason)
        self.give_back_waiting()

    def give_back_waiting(self) -> None:
        """Hands back what was not started."""
        for key in self._waiting:
            self._reports[key] = Released(*key)
        self._waiting.clear()

    # Attempts

    def _consider(self, key: Key, assignment: Assignment) -> None:
        """Takes an assigned job, or declines it, so that it is not offered again for a while."""
        reason = self._starter.reason_to_decline(assignment)
        if reason is None:
            self._waiting[key] = assignment
        else:
            self._reports[key] = Released(*key, reason=reason)

    def _launch(self, assignment: Assignment) -> None:
        key = assignment.job, assignment.attempt
        attempt = self._starter.make(assignment, self._ended)
        if isinstance(attempt, Finished | Released):
            # A job that counts as running cannot be declined, so it is handed back. From now on
            # jobs come as assigned, and those can be declined.
            self.careful = self.careful or isinstance(attempt, Released)
            self._reports[key] = attempt
            return
        self._running[key] = attempt
        if not self._timing:
            self._timing = True
            asyncio.get_running_loop().call_later(LOOK_S, self._look_at_times)
        attempt.start()

    def _look_at_times(self) -> None:
        """Checks all long timeouts with one timer, while anything runs."""
        loop = asyncio.get_running_loop()
        self._timing = bool(self._running)
        if self._timing:
            loop.call_later(LOOK_S, self._look_at_times)
            now = loop.time()
            for attempt in list(self._running.values()):
                attempt.check_time(now)

    def _ended(self, attempt: RunningAttempt, report: Report | None) -> None:
        self._running.pop(attempt.key, None)
        if self._all_ended is not None and not self._running:
            self._all_ended.set()
        task = attempt.flushing
        if task is not None:
            self._flushing[task] = None
            task.add_done_callback(self._flushed_one)
        if report is not None:
            self._reports[attempt.key] = report
        self._news()

    def _flushed_one(self, task: "asyncio.Task[None]") -> None:
        self._flushing.pop(task, None)
        if len(self._flushing) == self._count + LOGS_BEHIND:
            self._news()

    def started(self, keys: Mapping[Key, Assignment]) -> tuple[Started, ...]:
        """Returns the messages that report starts."""
        return tuple(Started(*key) for key in keys)

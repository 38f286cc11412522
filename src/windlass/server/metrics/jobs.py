"""Counts what happens to jobs, by queue and task, from the event log.

All servers read the whole log. An event is counted by one of them (`CountedEvents`), so the
counters of all servers add up. What jobs are is read from the store once per job, off the hot
path, and the memory for open jobs is bounded.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace
from prometheus_client.metrics_core import Metric as Family

from windlass.domain.job.kinds import program_or_task
from windlass.domain.lifecycle.failures import FAILURE_BY_NAME, FailureClass
from windlass.domain.lifecycle.states import (
    COMPLETED,
    FAILED,
    NEW_CODE,
    QUEUED,
    RETRYING,
    RUNNING,
    STATE_BY_CODE,
    TERMINAL_CODES,
    TIMED_OUT,
)
from windlass.domain.rows.events import Event, EventKind
from windlass.ports.loop_time import give_way_if_long, pages
from windlass.server.metrics.catalogue import MAX_QUEUES, MAX_TASKS, OTHER
from windlass.server.metrics.series import LONG_BUCKETS, BoundedNames, Count, Histogram, Labels
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store

REMEMBERED: Final = 200_000  # open jobs
READ_AT_ONCE: Final = 25  # jobs, whose arguments may have a megabyte each
UNKNOWN: Final = ("unknown", "unknown")  # a job whose row has been removed
NO_FAILURE: Final = "none"

_JOB: Final = int(EventKind.JOB)


class _Spec(msgspec.Struct, frozen=True):
    queue: str = "default"


class _Data(msgspec.Struct, frozen=True):
    failure: str = ""
    counts: str = ""
    state: str = ""


Learn = Callable[[int, bytes], object]  # a job and how it is stored

_spec: Final = msgspec.json.Decoder(_Spec).decode
_data: Final = msgspec.json.Decoder(_Data).decode


class _Open(msgspec.Struct, frozen=True, gc=False):
    """What is known about an open job; times are None before they come.

    The garbage collector would need 0.1 s to walk all that are remembered.
    """

    labels: Labels  # queue and task
    queued_at: int | None = None
    running_at: int | None = None


class JobCounts:
    """The counters and histograms of jobs."""

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}
        self._queues = BoundedNames(MAX_QUEUES)
        self._tasks = BoundedNames(MAX_TASKS)
        self._submitted = Count("windlass_jobs_submitted_total")
        self._completed = Count("windlass_jobs_completed_total")
        self._failed = Count("windlass_jobs_failed_total")
        self._ended = Count("windlass_jobs_ended_total")
        self._started = Count("windlass_attempts_started_total")
        self._lost = Count("windlass_attempts_lost_total")
        self._retries = Count("windlass_job_retries_total")
        self._timeouts = Count("windlass_job_timeouts_total")
        self._workers_lost = Count("windlass_workers_lost_total")
        self._logs_lost = Count("windlass_logs_lost_total")
        self._findings = Count("windlass_watchdog_findings_total")
        self._wait = Histogram("windlass_job_wait_seconds", LONG_BUCKETS)
        self._run = Histogram("windlass_job_run_seconds", LONG_BUCKETS)

    async def learn(self, store: Store, events: Iterable[Event], also: Learn | None = None) -> None:
        """Reads what the jobs of these events are, unless it is known; `also` gets it too."""
        jobs = {e.job for e in events if e.kind == _JOB and e.job not in self._open}
        if not jobs:
            return
        for some in pages(sorted(jobs), READ_AT_ONCE):
            specs = await store.read(partial(_specs, jobs=some))
            for job in some:
                await give_way_if_long()
                if job in specs and also is not None:
                    also(job, specs[job])
                while len(self._open) >= REMEMBERED:
                    self._open.pop(next(iter(self._open)))
                self._open[job] = _Open(self._labels(specs.get(job)))

    def observe(self, events: Sequence[Event], after: int = 0) -> None:
        """Takes notice of events, in their order, and counts those with a number above `after`."""
        for event in events:
            counts = event.seq > after
            if event.kind == _JOB:
                self._observe_job(event, counts)
            elif counts:
                self._count_other(event)

    def families(self) -> Iterator[Family]:
        """Returns everything that was counted."""
        for part in vars(self).values():
            if isinstance(part, Count | Histogram):
                yield part.family()

    def _observe_job(self, event: Event, counts: bool) -> None:
        known = self._open.get(event.job) or _Open(UNKNOWN)
        if counts:
            self._count(event, known)
        if event.to == QUEUED:
            known = replace(known, queued_at=event.at)
        elif event.to == RUNNING:
            known = replace(known, queued_at=None, running_at=event.at)
        elif event.source == RUNNING:
            known = replace(known, running_at=None)
        if event.to in TERMINAL_CODES:
            self._open.pop(event.job, None)
        elif event.job in self._open:
            self._open[event.job] = known

    def _count(self, event: Event, known: _Open) -> None:
        labels, to = known.labels, event.to
        queue = labels[:1]
        if event.source == NEW_CODE:
            self._submitted.add(queue)
        if to == RUNNING:
            self._started.add(labels)
            if known.queued_at is not None:
                self._wait.observe(queue, (event.at - known.queued_at) / 1000)
        elif event.source == RUNNING and known.running_at is not None:
            self._run.observe(queue, (event.at - known.running_at) / 1000)
        if to == TIMED_OUT:
            self._timeouts.add(labels)
        elif to == COMPLETED:
            self._completed.add(labels)
        elif to in (RETRYING, FAILED):
            self._count_failure(event, labels)
        if to in TERMINAL_CODES:
            self._ended.add((*queue, str(STATE_BY_CODE[to])))

    def _count_failure(self, event: Event, labels: Labels) -> None:
        data = _Data() if event.data is None else _data(event.data)
        failure = data.failure if data.failure in FAILURE_BY_NAME else NO_FAILURE
        if event.to == FAILED:
            self._failed.add((*labels, failure))
        elif data.counts not in ("", "none"):
            self._retries.add((*labels, failure))
        if failure == FailureClass.WORKER_LOST and data.counts != "none":
            self._lost.add(labels)

    def _count_other(self, event: Event) -> None:
        if event.kind == EventKind.WATCHDOG:
            self._findings.add()
        elif event.kind == EventKind.WORKER:
            if (event.reason or "").startswith("dead"):
                self._workers_lost.add()
        elif event.kind == EventKind.LOG and event.data and _data(event.data).state == "lost":
            self._logs_lost.add()

    def _labels(self, stored: bytes | None) -> Labels:
        if stored is None:
            return UNKNOWN
        queue, task = names_of(stored)
        (queue,) = self._queues.admit((queue,), (OTHER,))
        return self._tasks.admit((queue, task), (queue, OTHER))


async def _specs(tx: ReadTx, jobs: Sequence[int]) -> dict[int, bytes]:
    return await tx.jobs.specs(jobs)


def names_of(stored: bytes) -> tuple[str, str]:
    """Returns the queue of a stored job, and what it runs."""
    return _spec(stored).queue, program_or_task(stored)

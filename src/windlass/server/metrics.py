"""Metrics for Prometheus: the engine's counters, the queue depths, and two histograms.

Waiting and running times come from the event log. The memory for open jobs is bounded.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import Event, EventKind
from windlass.engine.transaction.counters import Metrics
from windlass.server.connections.refusals import Reason

_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400)
_REMEMBERED = 200_000

_COUNTS = {
    "windlass_retries_total": ("retries", "Retries after failed or lost attempts."),
    "windlass_timeouts_total": ("timeouts", "Attempts that took too long."),
    "windlass_orphans_total": ("orphans", "Attempts whose worker was gone."),
    "windlass_worker_failures_total": ("worker_failures", "Failures that workers caused."),
}


class PoolCounts(Protocol):
    """The counts of a connection pool."""

    @property
    def open(self) -> int: ...
    @property
    def idle(self) -> int: ...
    @property
    def in_use(self) -> int: ...
    @property
    def waits(self) -> int: ...


class Meters:
    """The metrics of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._depth = self._gauge("windlass_queue_depth", "Queued jobs.", "queue")
        self._last_run = self._gauge(
            "windlass_loop_last_run_seconds", "When a loop last ran, since 1970.", "loop"
        )
        self._pool = {
            name: self._gauge(f"windlass_db_pool_{name}", f"Database connections: {name}.")
            for name in ("open", "idle", "in_use", "waits")
        }
        self._assignments = Counter(
            "windlass_assignments",
            "Jobs given to workers; failure: they came back before they ran.",
            ["result"],
            registry=self._registry,
        )
        for result in ("success", "failure"):
            self._assignments.labels(result)  # counts from now on, not from the first scrape
        self._counts = {
            name: Counter(name.removesuffix("_total"), text, registry=self._registry)
            for name, (_, text) in _COUNTS.items()
        }
        self._refused = Counter(
            "windlass_http_refused",
            "Connections and requests that were refused or cut off, by reason.",
            ["reason"],
            registry=self._registry,
        )
        for reason in Reason:
            self._refused.labels(reason)
        self._open = self._gauge("windlass_http_connections", "Open connections.")
        self.connections: Callable[[], int] = lambda: 0  # set by what listens
        self._wait = self._histogram("windlass_job_wait_seconds", "From queued to running.")
        self._run = self._histogram("windlass_job_run_seconds", "From running to the end.")
        self._seen = Metrics()
        self._queued_at: dict[int, int] = {}
        self._running_at: dict[int, int] = {}

    def refuse(self, reason: Reason) -> None:
        """Counts a refused connection or request."""
        self._refused.labels(reason).inc()

    def observe(self, events: Iterable[Event]) -> None:
        """Measures waiting and running times from events, in their order."""
        for event in events:
            if event.kind != EventKind.JOB:
                continue
            if event.to == State.QUEUED.code:
                _remember(self._queued_at, event)
            elif event.to == State.RUNNING.code:
                _measure(self._wait, self._queued_at, event)
                _remember(self._running_at, event)
            elif event.frm == State.RUNNING.code:
                _measure(self._run, self._running_at, event)

    def render(self, metrics: Metrics, pool: PoolCounts | None) -> bytes:
        """Returns the metrics in the text format of Prometheus."""
        self._depth.clear()
        for queue, depth in metrics.queue_depth.items():
            self._depth.labels(queue).set(depth)
        for loop, at in metrics.last_run_ms.items():
            self._last_run.labels(loop).set(at / 1000)
        for name, gauge in self._pool.items():
            gauge.set(getattr(pool, name, 0) if pool is not None else 0)
        self._open.set(self.connections())
        self._advance(metrics)
        return generate_latest(self._registry)

    def _advance(self, metrics: Metrics) -> None:
        seen = self._seen
        done = metrics.assignment_successes - seen.assignment_successes
        missed = metrics.assignment_failures - seen.assignment_failures
        self._assignments.labels("success").inc(max(0, done))
        self._assignments.labels("failure").inc(max(0, missed))
        for name, (field, _) in _COUNTS.items():
            self._counts[name].inc(max(0, getattr(metrics, field) - getattr(seen, field)))
        self._seen = metrics

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, buckets=_BUCKETS, registry=self._registry)


def _remember(moments: dict[int, int], event: Event) -> None:
    if len(moments) >= _REMEMBERED:
        moments.pop(next(iter(moments)))
    moments[event.job] = event.at


def _measure(histogram: Any, moments: dict[int, int], event: Event) -> None:
    since = moments.pop(event.job, None)
    if since is not None:
        histogram.observe((event.at - since) / 1000)

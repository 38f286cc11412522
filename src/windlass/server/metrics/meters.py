"""The metrics of one server, gathered from all parts and written for Prometheus."""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from windlass.engine.transaction.effects import Metrics
from windlass.server.connections.refusals import Reason
from windlass.server.metrics.catalogue import BY_NAME, MAX_POOLS, MAX_QUEUES, QUEUES_EVER
from windlass.server.metrics.holds import Holds
from windlass.server.metrics.jobs import JobCounts
from windlass.server.metrics.series import (
    SHORT_BUCKETS,
    Count,
    Histogram,
    Labels,
    ShownNames,
    gauge,
)

NO_ROUTE: Final = ("none", "none")  # what anybody may ask for must not become a label

# The engine's own counters, by metric.
_COUNTS = {
    "windlass_retries_total": "retries",
    "windlass_timeouts_total": "timeouts",
    "windlass_orphans_total": "orphans",
    "windlass_worker_failures_total": "worker_failures",
}
_POOL = ("open", "idle", "in_use")


class Requests:
    """The requests that a server answered."""

    def __init__(self) -> None:
        self._count = Count("windlass_http_requests_total")
        self._times = Histogram("windlass_http_request_seconds", SHORT_BUCKETS)

    def note(self, route: Labels, status: int, seconds: float) -> None:
        """Counts an answer to a route, given as its path and method."""
        self._count.add((*route, str(status)))
        self._times.observe(route, seconds)

    def families(self) -> Iterator[Family]:
        """Returns everything that was counted."""
        yield self._count.family()
        yield self._times.family()


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


class _Parts(Collector):
    """What a registry asks for its families; `shown` is set for each scrape."""

    def __init__(self) -> None:
        self.shown: Callable[[], Iterable[Family]] = tuple

    def collect(self) -> Iterable[Family]:
        return self.shown()


class Meters:
    """The metrics of one server."""

    def __init__(self, store_kind: str = "memory") -> None:
        self._registry = CollectorRegistry()
        self._assignments = self._counter("windlass_assignments_total")
        for result in ("success", "failure"):
            self._assignments.labels(result)  # counts from now on, not from the first scrape
        self._counts = {name: self._counter(name) for name in _COUNTS}
        self._refused = self._counter("windlass_http_refused_total")
        for reason in Reason:
            self._refused.labels(reason)
        self.connections: Callable[[], int] = lambda: 0  # set by what listens
        self.queues = ShownNames(MAX_QUEUES, QUEUES_EVER)
        self.jobs = JobCounts()
        self.requests = Requests()
        self.holds = Holds()
        self._store_kind = store_kind
        self._seen = Metrics()
        self._parts = _Parts()
        self._registry.register(self._parts)
        ProcessCollector(registry=self._registry)

    def refuse(self, reason: Reason) -> None:
        """Counts a refused connection or request."""
        self._refused.labels(reason).inc()

    def render(
        self, metrics: Metrics, pool: PoolCounts | None, state: Iterable[Family] = ()
    ) -> bytes:
        """Returns the metrics in the text format of Prometheus; `state` is about the store."""
        self._advance(metrics)

        def shown() -> Iterator[Family]:
            yield from self._own(metrics, pool)
            yield from state
            yield from self.jobs.families()
            yield from self.requests.families()
            yield from self.holds.families()

        self._parts.shown = shown
        try:
            return generate_latest(self._registry)
        finally:
            self._parts.shown = tuple

    def _own(self, metrics: Metrics, pool: PoolCounts | None) -> Iterator[Family]:
        """Returns what the engine counted, and what this server has."""
        depth = {queue: float(depth) for queue, depth in metrics.queue_depth.items()}
        yield gauge("windlass_queue_depth", self.queues.largest(depth))
        for name in _POOL:
            count = float(getattr(pool, name, 0)) if pool is not None else 0.0
            yield gauge(f"windlass_db_pool_{name}", {(): count})
        waits = Count("windlass_db_pool_waits_total")
        waits.add(by=0 if pool is None else pool.waits)
        yield waits.family()
        yield gauge("windlass_http_connections", {(): self.connections()})
        yield from _loops(metrics)
        wanted = {(name,): float(n) for name, n in list(metrics.wanted.items())[:MAX_POOLS]}
        yield gauge("windlass_pool_wanted_workers", wanted)
        about = version("windlass"), platform.python_version(), self._store_kind
        yield gauge("windlass_build_info", {about: 1})

    def _advance(self, metrics: Metrics) -> None:
        seen = self._seen
        done = metrics.assignment_successes - seen.assignment_successes
        missed = metrics.assignment_failures - seen.assignment_failures
        self._assignments.labels("success").inc(max(0, done))
        self._assignments.labels("failure").inc(max(0, missed))
        for name, field in _COUNTS.items():
            self._counts[name].inc(max(0, getattr(metrics, field) - getattr(seen, field)))
        self._seen = metrics

    def _counter(self, name: str) -> Counter:
        about = BY_NAME[name]
        return Counter(
            name.removesuffix("_total"), about.text, about.labels, registry=self._registry
        )


def _loops(metrics: Metrics) -> Iterator[Family]:
    last_run: Mapping[str, int] = metrics.last_run_ms
    yield gauge(
        "windlass_loop_last_run_seconds", {(loop,): at / 1000 for loop, at in last_run.items()}
    )
    rounds = metrics.loops
    yield gauge(
        "windlass_loop_duration_seconds", {(n,): r.took_ms / 1000 for n, r in rounds.items()}
    )
    yield gauge(
        "windlass_loop_interval_seconds", {(n,): r.interval_ms / 1000 for n, r in rounds.items()}
    )
    failures = Count("windlass_loop_failures_total")
    for name, one in rounds.items():
        failures.add((name,), one.failures)
    yield failures.family()

"""Declares every metric once: its name, kind, help text, labels, and what it describes.

`metrics_page` writes the reference page of the metrics from the catalogue.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Literal, NamedTuple

OTHER: Final = "other"  # the value of a label beyond its bound
MAX_QUEUES: Final = 100  # values of `queue` in one family
QUEUES_EVER: Final = 1_000  # values of `queue` of gauges in the life of a server
MAX_TASKS: Final = 300  # pairs of `queue` and `task`
MAX_POOLS: Final = 100  # values of `pool`

Kind = Literal["counter", "gauge", "histogram"]


class Scope(StrEnum):
    """What a value describes, and so how the values of several servers are combined."""

    LOG = "log"  # what happened to jobs; each event is counted by one server
    SERVER = "server"  # what this server did or has
    STORE = "store"  # the state of the store, which all servers report alike


class Metric(NamedTuple):
    """One family of series."""

    name: str
    kind: Kind
    text: str
    scope: Scope
    labels: tuple[str, ...] = ()


def _metrics(scope: Scope, kind: Kind, *rows: tuple[str, str, str]) -> tuple[Metric, ...]:
    return tuple(
        Metric(f"windlass_{name}", kind, text, scope, tuple(labels.split()))
        for name, text, labels in rows
    )


CATALOGUE: Final = (
    *_metrics(
        Scope.LOG, "counter",
        ("jobs_submitted_total", "Jobs that were submitted.", "queue"),
        ("jobs_completed_total", "Jobs that completed.", "queue task"),
        ("jobs_failed_total", "Jobs that failed for good.", "queue task failure"),
        ("jobs_ended_total", "Jobs that ended, in any way.", "queue state"),
        ("attempts_started_total", "Attempts that started to run.", "queue task"),
        ("attempts_lost_total", "Attempts whose worker was lost.", "queue task"),
        ("job_retries_total", "Retries after failed or lost attempts.", "queue task failure"),
        ("job_timeouts_total", "Attempts that took too long.", "queue task"),
        ("workers_lost_total", "Workers that stopped sending heartbeats.", ""),
        ("logs_lost_total", "Logs of jobs of which a part was lost.", ""),
        ("watchdog_findings_total", "Contradictions that the watchdog found in workflows.", ""),
    ),
    *_metrics(
        Scope.LOG, "histogram",
        ("job_wait_seconds", "From queued to running.", "queue"),
        ("job_run_seconds", "From running to the end of the attempt.", "queue"),
    ),
    *_metrics(
        Scope.SERVER, "counter",
        ("assignments_total", "Jobs given to workers; failure: they came back before they ran.",
         "result"),
        ("retries_total", "Retries after failed or lost attempts.", ""),
        ("timeouts_total", "Attempts that took too long.", ""),
        ("orphans_total", "Attempts whose worker died, was removed or was restarted.", ""),
        ("worker_failures_total", "Failures that workers caused.", ""),
        ("http_refused_total",
         "Connections and requests that were refused or cut off, by reason.", "reason"),
        ("http_requests_total", "Requests that were answered.", "route method status"),
        ("loop_failures_total", "Rounds of a loop that failed.", "loop"),
        ("event_loop_holds_total",
         "Steps that held the event loop for over 0.1 s of processor time, by route or loop.",
         "work"),
        ("db_pool_waits_total", "How often work had to wait for a connection to the database.", ""),
    ),
    *_metrics(
        Scope.SERVER, "histogram",
        ("http_request_seconds",
         "How long requests took; those that wait for something, with their wait.",
         "route method"),
    ),
    *_metrics(
        Scope.SERVER, "gauge",
        ("http_connections", "Open connections.", ""),
        ("loop_last_run_seconds", "When a loop last ran, since 1970.", "loop"),
        ("loop_duration_seconds", "How long the last round of a loop took.", "loop"),
        ("loop_interval_seconds", "How long a loop pauses between two rounds.", "loop"),
        ("event_loop_longest_hold_seconds",
         "Processor time of the longest step since this server started, by what it worked on.",
         "work"),
        ("event_lag_events", "Events in the log that this server has not read yet.", ""),
        ("store_ready", "1 if the store and the blobs can be written.", ""),
        ("db_pool_open", "Open connections to the database.", ""),
        ("db_pool_idle", "Connections to the database that are idle.", ""),
        ("db_pool_in_use", "Connections to the database that are in use.", ""),
        ("pool_wanted_workers",
         "How many workers a pool should have, before limits; the server that sizes pools has it.",
         "pool"),
        ("build_info", "1; the labels say what runs.", "version python store"),
    ),
    *_metrics(
        Scope.STORE, "gauge",
        ("queue_depth", "Queued jobs.", "queue"),
        ("queue_paused", "1 if a queue is paused.", "queue"),
        ("queue_oldest_job_age_seconds",
         "How long the first job in line has waited, of those not tried before.", "queue"),
        ("inbox_oldest_age_seconds",
         "How long the oldest submission of a user's own transaction has waited to become jobs.",
         ""),
        ("jobs", "Open jobs by state; all but queued ones are counted up to 20,000 in each place.",
         "queue state"),
        ("losses", "Failovers and restores that lost acknowledged commits.", ""),
        ("leases", "Jobs that workers hold, counted up to 20,000.", ""),
        ("workers", "Workers by status.", "status"),
        ("worker_slots", "Jobs that workers can run at once, by their status.", "status"),
        ("pool_workers", "Workers of a pool by state.", "pool state"),
        ("pool_max_workers", "How many workers a pool may have.", "pool"),
        ("pool_used_seconds", "Worker time that a pool has used this month.", "pool"),
        ("pool_budget_seconds", "Time of workers that a pool may use in a month.", "pool"),
        ("pool_failed_launches", "Consecutive failed launches of a pool.", "pool"),
    ),
)  # fmt: skip

BY_NAME: Final = {metric.name: metric for metric in CATALOGUE}

_START: Final = """\
# Metrics

Every server answers `GET /metrics` with these, for callers with a token. The guide
[monitoring](../guides/monitoring.md) says how to set up Prometheus. The names follow its
conventions: times are in seconds, counters end in `_total` and start at 0 with the server.

If several servers use one store, *combine* says how their values make one:

- **sum**: counters of what happened to jobs. Each event of the log is counted by exactly one
  server, so `sum()` is right, also after servers came and went. Other counters and gauges with
  *sum* are what one server did or has.
- **max**: the state of the store. All servers report the same, so take any: `max by (queue)
  (windlass_queue_depth)`.

Values of labels are bounded, whoever makes up names: at most {queues} queues and {tasks} pairs of
queue and task have series of their own in a family (the first a server sees, or the largest), the
rest is `{other}`. Gauges show at most {ever} names of queues in the life of a server, so that names
which come and go do not add up either. `task` is the kind of work: the option `kind` of a job, else
its function, the name of its program, or its task; never an argument. `failure` is a class of
failures, or `none`.

Beside these there are `process_*` (memory, CPU, files) of the server's process, and `*_created`:
when some counters began.

"""

_HEAD: Final = """\
| metric | type | labels | combine | meaning |
|---|---|---|---|---|
"""


def metrics_page() -> str:
    """Returns the text of docs/reference/metrics.md."""
    start = _START.format(queues=MAX_QUEUES, tasks=MAX_TASKS, other=OTHER, ever=f"{QUEUES_EVER:,}")
    return start + metrics_table(CATALOGUE)


def metrics_table(metrics: Iterable[Metric]) -> str:
    """Returns a table of metrics."""
    return _HEAD + "".join(map(_row, metrics))


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    combine = "max" if metric.scope is Scope.STORE else "sum"
    return f"| `{metric.name}` | {metric.kind} | {labels} | {combine} | {metric.text} |\n"

"""Writes the reference page of the metrics from the catalogue."""

from collections.abc import Iterable
from typing import Final

from windlass.server.metrics.catalogue import (
    CATALOGUE,
    MAX_QUEUES,
    MAX_TASKS,
    OTHER,
    QUEUES_EVER,
    Metric,
    Scope,
)

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

"""Random commands for an engine, as data: the same list drives every store.

Jobs, workers and assignments are named by position, counted around what there is, so that
every command means something at any time.
"""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.engine.support.rig import HOUR, MINUTE, SECOND

TASKS = ("shell", "ffmpeg")
QUEUES = ("live", "default", "batch")
WORKERS = ("ann", "bob", "cid")
METADATA: tuple[dict[str, object], ...] = ({}, {"system:cpus": 8}, {"tasks_denylist": ["ffmpeg"]})


class Submit(NamedTuple):
    jobs: list[dict[str, Any]]
    workflow: dict[str, Any] | None  # the fields of a new one
    joins: int | None  # the position of an existing one


class Report(NamedTuple):
    """What a worker says about the assignment it holds at this position."""

    held: int
    kind: str
    failure: str | None


class Sync(NamedTuple):
    worker: int
    want: int
    prefetch: bool
    reports: list[Report]
    reply_is_lost: bool
    audit: bool


class Command(NamedTuple):
    """A command by name, on the job or worker at this position."""

    name: str
    position: int
    value: Any


class Advance(NamedTuple):
    ms: int


class Loop(NamedTuple):
    name: str


Move = Submit | Sync | Command | Advance | Loop

_limits = st.none() | st.tuples(st.sampled_from(["db", "gpu"]), st.integers(1, 2))

_job = st.fixed_dictionaries(
    {"task": st.sampled_from(TASKS), "queue": st.sampled_from(QUEUES)},
    optional={
        "priority": st.sampled_from(["high", "low", 0, 7]),
        "requires": st.just(("cpus>=4",)),
        "after": st.lists(st.integers(0, 30), max_size=2),
        "after_any": st.lists(st.integers(0, 30), max_size=2),
        "allow_failure": st.booleans(),
        "unblock": st.just("manual"),
        "retries": st.integers(0, 2),
        "retry_on": st.just(("execution",)),
        "timeout_ms": st.sampled_from([SECOND, MINUTE]),
        "not_before": st.sampled_from([-HOUR, 7 * SECOND, HOUR]),
        "concurrency": _limits,
        "key": st.sampled_from(["k1", "k2"]),
    },
)
_flow = st.fixed_dictionaries(
    {"fail_fast": st.booleans()},
    optional={"priority": st.integers(-2, 2)},
)
_submits = st.builds(Submit, st.lists(_job, min_size=1, max_size=3), st.none() | _flow, st.none())
_joins = st.builds(Submit, st.lists(_job, min_size=1, max_size=2), st.none(), st.integers(0, 5))
_failures = st.sampled_from([None, "execution", "network", "worker_lost", "resource"])
_kinds = st.sampled_from(
    [
        "completed",
        "completed",
        "failed",
        "canceled",
        "timed_out",
        "started",
        "released",
        "refused",
        "misfit",
        "unable",
    ]
)
_reports = st.lists(st.builds(Report, st.integers(0, 5), _kinds, _failures), max_size=2)
_rarely = st.integers(0, 9).map(lambda n: n == 0)
_syncs = st.builds(
    Sync, st.integers(0, 2), st.integers(0, 3), st.booleans(), _reports, _rarely, _rarely
)


def _command(names: list[str], most: int, values: st.SearchStrategy[Any]) -> Any:
    return st.builds(Command, st.sampled_from(names), st.integers(0, most), values)


_commands = st.one_of(
    _command(["cancel", "retry", "unblock", "reject"], 30, st.none()),
    _command(["cancel_flow", "retry_flow", "repeat_flow"], 5, st.none()),
    _command(["adjust"], 30, st.integers(-3, 3)),
    _command(["pause", "resume"], 0, st.sampled_from(QUEUES)),
    _command(["enrol", "takeover"], 2, st.integers(0, 2)),
    _command(["drain", "disable", "enable", "remove", "force"], 2, st.none()),
    _command(["activity"], 2, st.integers(0, 5)),
)
_times = st.builds(Advance, st.sampled_from([1, 5 * SECOND, 20 * SECOND, 95 * SECOND, 2 * HOUR]))
_loops = st.builds(Loop, st.sampled_from(["health", "cleanup", "scheduling", "watchdog"]))

moves = st.one_of(_submits, _joins, _syncs, _syncs, _syncs, _commands, _times, _loops)

"""What a page says that it shows, and which changes concern it."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import InvalidInput

MAX_TOPICS: Final = 64
_MAX_DIGITS: Final = 15

# Whole lists, and the kinds of events that change them.
LISTS: Final[Mapping[str, frozenset[int]]] = {
    "jobs": frozenset(
        {EventKind.JOB, EventKind.LOG, EventKind.PRIORITY, EventKind.SUPERSEDE, EventKind.WATCHDOG}
    ),
    "workflows": frozenset({EventKind.WORKFLOW, EventKind.JOB}),
    "workers": frozenset({EventKind.WORKER, EventKind.JOB}),
    "pools": frozenset({EventKind.POOL}),
    "queues": frozenset({EventKind.QUEUE, EventKind.JOB}),
    "schedules": frozenset({EventKind.SCHEDULE, EventKind.REACTION}),
    "templates": frozenset({EventKind.TEMPLATE}),
    "tokens": frozenset({EventKind.ACCESS}),
}
SINGLE: Final = ("job", "workflow", "worker")
_EXPECTED: Final = f"one of {', '.join(LISTS)}, or {', '.join(f'{name}:ID' for name in SINGLE)}"


class Changed(NamedTuple):
    """What one event changed; 0: nothing of that sort."""

    kind: int
    job: int
    workflow: int
    worker: int
    namespace: str | None  # of the job, schedule or template; None: of none


class Topics(NamedTuple):
    """What a page shows: kinds of events, and single jobs, workflows and workers."""

    kinds: frozenset[int]
    jobs: frozenset[int]
    workflows: frozenset[int]
    workers: frozenset[int]

    @property
    def show_jobs(self) -> bool:
        """Whether the page shows jobs, or counts of them."""
        return EventKind.JOB in self.kinds or bool(self.jobs or self.workflows)

    def take(self, change: Changed) -> bool:
        """Returns whether the page shows what changed."""
        return (
            change.kind in self.kinds
            or change.job in self.jobs
            or change.workflow in self.workflows
            or change.worker in self.workers
        )


def parse_topics(shown: Iterable[str]) -> Topics:
    """Returns the topics of a request; raises `InvalidInput`."""
    given = list(shown)
    if not given or len(given) > MAX_TOPICS:
        raise InvalidInput("show", f"1 to {MAX_TOPICS} topics", len(given))
    kinds: set[int] = set()
    single: dict[str, set[int]] = {name: set() for name in SINGLE}
    for topic in given:
        if topic in LISTS:
            kinds |= LISTS[topic]
            continue
        name, _, number = topic.partition(":")
        is_number = number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS
        if name not in SINGLE or not is_number or int(number) == 0:
            raise InvalidInput("show", _EXPECTED, topic[:100])
        single[name].add(int(number))
    return Topics(
        frozenset(kinds),
        frozenset(single["job"]),
        frozenset(single["workflow"]),
        frozenset(single["worker"]),
    )

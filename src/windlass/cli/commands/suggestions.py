"""Suggests existing names in place of misspelt ones, by asking the server for the known names."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from windlass.cli.options.connection import Connection
from windlass.cli.output.text import YELLOW, warn
from windlass.domain.values.errors import NotFound, WindlassError
from windlass.domain.values.names import did_you_mean

# Queues that every installation has, even before they hold a job.
STANDARD_QUEUES: Final = ("live", "default", "batch")
ALLOWED_TASKS: Final = "tasks_allowlist"


@contextmanager
def suggesting(at: Connection) -> Iterator[None]:
    """Adds "did you mean X?" to a `NotFound` error about a name."""
    try:
        yield
    except NotFound as error:
        find = _NAMES.get(error.kind)
        if find is None or error.hint:
            raise
        hint = did_you_mean(str(error.id), find(at))
        raise NotFound(error.kind, error.id, hint) from None


def warn_of_typos(at: Connection, queue: str | None, task: str | None) -> None:
    """Warns of a queue or a task that is unknown but close to a known one.

    New names are allowed, so this is no error.
    """
    try:
        if queue and (hint := _hint(queue, queue_names(at))):
            warn(f"warning: queue {queue} does not exist yet{hint}", YELLOW)
        if task:
            _warn_of_task(task, task_names(at))
    except WindlassError:
        return  # A token that may not list them gets no hint.


def _warn_of_task(task: str, known: list[str]) -> None:
    if task in known:
        return
    if ":" in task:
        call = f"""--task python --args '{{"function": "{task}"}}'"""
        warn(f"warning: no worker runs task {task}; functions are run with {call}", YELLOW)
    elif hint := did_you_mean(task, known):
        warn(f"warning: no worker runs task {task}{hint}", YELLOW)


def queue_names(at: Connection) -> list[str]:
    """Returns the names of the standard queues and of those on the server."""
    from windlass.messages.workers import QueueList

    found = at.call("GET", "/api/v1/queues", QueueList).queues
    return [*STANDARD_QUEUES, *(queue.name for queue in found)]


def task_names(at: Connection) -> list[str]:
    """Returns the tasks that the known workers can run."""
    from windlass.messages.workers import WorkerList

    found = at.call("GET", "/api/v1/workers", WorkerList).workers
    return [task for worker in found for task in worker.metadata.get(ALLOWED_TASKS, ())]


def _hint(name: str, known: list[str]) -> str:
    return "" if name in known else did_you_mean(name, known)


def _templates(at: Connection) -> list[str]:
    from windlass.messages.schedules import TemplateList

    found = at.call("GET", "/api/v1/templates", TemplateList)
    return [template.name for template in found.templates]


def _schedules(at: Connection) -> list[str]:
    from windlass.messages.schedules import ScheduleList

    found = at.call("GET", "/api/v1/schedules", ScheduleList)
    return [schedule.name for schedule in found.schedules]


def _pools(at: Connection) -> list[str]:
    from windlass.messages.pools import PoolList

    return [pool.name for pool in at.call("GET", "/api/v1/pools", PoolList).pools]


def _workers(at: Connection) -> list[str]:
    from windlass.messages.workers import WorkerList

    return [worker.name for worker in at.call("GET", "/api/v1/workers", WorkerList).workers]


_NAMES: Final[dict[str, Callable[[Connection], list[str]]]] = {
    "template": _templates,
    "schedule": _schedules,
    "pool": _pools,
    "worker": _workers,
}

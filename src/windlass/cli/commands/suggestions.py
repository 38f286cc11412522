"""Suggests existing names in place of misspelt ones, by asking the server for the known names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from windlass.cli.options.connection import Connection
from windlass.cli.output.text import YELLOW, warn
from windlass.domain.values.errors import NotFound, WindlassError
from windlass.domain.values.names import did_you_mean

# Queues that every installation has, even before they hold a job.
STANDARD_QUEUES: Final = ("live", "default", "batch")
LISTED: Final = ("template", "schedule", "pool", "worker")  # kinds whose names can be listed
ALLOWED_TASKS: Final = "tasks_allowlist"


@contextmanager
def suggesting(at: Connection) -> Iterator[None]:
    """Adds "did you mean X?" to a `NotFound` error about a name."""
    try:
        yield
    except NotFound as error:
        if error.kind not in LISTED or error.hint:
            raise
        names = [one["name"] for one in _listed(at, f"{error.kind}s")]
        hint = did_you_mean(str(error.id), names)
        raise NotFound(error.kind, error.id, hint) from None


def warn_of_typos(at: Connection, queue: str | None, task: str | None) -> None:
    """Warns of a queue or a task that is unknown but close to a known one.

    New names are allowed, so this is no error.
    """
    try:
        known = queue_names(at) if queue else []
        if queue and queue not in known and (hint := did_you_mean(queue, known)):
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
    return [*STANDARD_QUEUES, *(queue["name"] for queue in _listed(at, "queues"))]


def task_names(at: Connection) -> list[str]:
    """Returns the tasks that the known workers can run."""
    workers = _listed(at, "workers")
    return [task for worker in workers for task in worker["metadata"].get(ALLOWED_TASKS, ())]


def _listed(at: Connection, what: str) -> list[dict[str, Any]]:
    """Returns all queues, workers, … of the server."""
    found: list[dict[str, Any]] = at.call("GET", f"/api/v1/{what}", dict[str, Any])[what]
    return found

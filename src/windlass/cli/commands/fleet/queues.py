"""`windlass queues` and `windlass namespaces`: which jobs get room, and how much."""

from typing import Annotated

from cyclopts import App, Parameter

from windlass.cli.commands.suggestions import warn_of_typos
from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Json, Misused
from windlass.cli.output.tables import print_rows
from windlass.cli.output.text import print_answer, print_change
from windlass.domain.matching.isolation import Isolation
from windlass.domain.values.quantities import readable_duration
from windlass.messages.workers import (
    Changed,
    NamespaceWeights,
    QueueInfo,
    QueueLimits,
    QueueList,
    WeightRequest,
)

Queue = Annotated[str, Parameter(help="The queue's name.")]

queues = App(name="queues", help="Show, pause, resume and limit queues.")
Namespace = Annotated[str, Parameter(help="The namespace's name.")]
namespaces = App(name="namespaces", help="Show and set the fair shares of namespaces.")


@queues.command(name="list")
@queues.default
def list_queues(*, at: Connection = HERE, json: Json = False) -> None:
    """List queues."""
    found = at.call("GET", "/api/v1/queues", QueueList).queues
    rows = [
        (q.name, q.weight, "paused" if q.paused else "open", q.depth, _running(q),
         q.max_per_worker or None, "yes" if q.preempts else None, q.isolation, _timeout(q))
        for q in found
    ]  # fmt: skip
    columns = (
        "queue",
        "weight",
        "state",
        "queued",
        "running",
        "per worker",
        "preempts",
        "isolation",
        "timeout",
    )
    print_rows(found, json, columns, rows, "no queues yet")


@queues.command
def pause(queue: Queue, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Pause a queue: none of its jobs start."""
    warn_of_typos(at, queue, None)
    _print(at.call("POST", f"/api/v1/queues/{queue}/pause", Changed), json, queue, "paused")


@queues.command
def resume(queue: Queue, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Resume a paused queue."""
    warn_of_typos(at, queue, None)
    _print(at.call("POST", f"/api/v1/queues/{queue}/resume", Changed), json, queue, "open")


@queues.command
def limit(
    queue: Queue,
    /,
    *,
    max_running: int | None = None,
    max_per_worker: int | None = None,
    preempts: Annotated[bool | None, Parameter(negative="--no-preempts")] = None,
    isolation: Isolation | None = None,
    timeout: str | None = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Limit how many jobs of a queue may run, how, and for how long; running ones continue.

    Parameters
    ----------
    max_running
        The maximum number of its jobs that run at the same time; 0 means no limit.
    max_per_worker
        The maximum number of its jobs on one worker; 0 means no limit.
    preempts
        Its jobs may preempt preemptible jobs in lower queues.
    isolation
        The weakest isolation in which its jobs may run; process: any.
    timeout
        The timeout of jobs that set none, such as 6h; none: no timeout; default: the server's.
        Jobs already submitted keep theirs.
    """
    asked = QueueLimits(
        max_running=max_running,
        max_per_worker=max_per_worker,
        preempts=preempts,
        isolation=isolation,
        timeout=timeout,
    )
    if asked == QueueLimits():
        flags = "--max-running, --max-per-worker, --preempts, --isolation or --timeout"
        raise Misused(f"nothing to limit: give {flags}")
    warn_of_typos(at, queue, None)
    changed = at.call("POST", f"/api/v1/queues/{queue}/limits", Changed, asked)
    _print(changed, json, queue, "limited as asked")


def _print(changed: Changed, json: bool, queue: str, state: str) -> None:
    print_answer(
        changed, json, f"queue {queue} is {'now' if changed.applied else 'already'} {state}"
    )


def _running(queue: QueueInfo) -> str | None:
    if queue.running is None or not queue.max_running:
        return None if queue.running is None else str(queue.running)
    return f"{queue.running} of {queue.max_running}"


def _timeout(queue: QueueInfo) -> str | None:
    if not isinstance(queue.timeout, float):
        return queue.timeout
    return readable_duration(round(queue.timeout * 1000))


@namespaces.command(name="list")
@namespaces.default
def list_namespaces(*, at: Connection = HERE, json: Json = False) -> None:
    """List namespaces with a weight; all others have weight 1."""
    found = at.call("GET", "/api/v1/namespaces/weights", NamespaceWeights).namespaces
    rows = [(space.name, space.weight) for space in found]
    print_rows(found, json, ("namespace", "weight"), rows, "no namespace has a weight")


@namespaces.command(name="weight")
def set_weight(
    namespace: Namespace, weight: int, /, *, at: Connection = HERE, json: Json = False
) -> None:
    """Set a namespace's share; it takes effect on servers that have `fair_share = 1`.

    Parameters
    ----------
    weight
        From 1 to 1000. With twice the weight, twice as many jobs of the same priority level run.
    """
    asked = WeightRequest(weight=weight)
    print_change(at.call("POST", f"/api/v1/namespaces/{namespace}/weight", Changed, asked), json)

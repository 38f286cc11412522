"""Commands about queues and the shares of namespaces."""

from typing import Annotated

from cyclopts import App, Parameter

from windlass.cli.connection import HERE, Connection
from windlass.cli.output import Json, print_change, print_json, print_table
from windlass.domain.values.errors import InvalidInput
from windlass.wire.workers import (
    Changed,
    NamespaceWeights,
    QueueInfo,
    QueueLimitsRequest,
    QueueList,
    WeightRequest,
)

Queue = Annotated[str, Parameter(help="The queue's name.")]
Namespace = Annotated[str, Parameter(help="The namespace's name.")]

queues = App(name="queues", help="Look at, pause, resume and limit queues.")
namespaces = App(name="namespaces", help="Look at and set the shares of namespaces.")


@queues.command(name="list")
@queues.default
def list_queues(*, at: Connection = HERE, json: Json = False) -> None:
    """List queues."""
    found = at.call("GET", "/api/v1/queues", QueueList).queues
    if json:
        print_json(found)
        return
    rows = [
        (q.name, q.weight, "paused" if q.paused else "open", q.depth, _running(q),
         q.max_per_worker or None, "yes" if q.preempts else None)
        for q in found
    ]  # fmt: skip
    columns = ("queue", "weight", "state", "queued", "running", "per worker", "preempts")
    print_table(columns, rows, "no queues yet")


@queues.command
def pause(queue: Queue, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Give out no more jobs of a queue."""
    print_change(at.call("POST", f"/api/v1/queues/{queue}/pause", Changed), json)


@queues.command
def resume(queue: Queue, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Give out jobs of a queue again."""
    print_change(at.call("POST", f"/api/v1/queues/{queue}/resume", Changed), json)


@queues.command
def limit(
    queue: Queue,
    /,
    *,
    max_running: int | None = None,
    max_per_worker: int | None = None,
    preempts: Annotated[bool | None, Parameter(negative="--no-preempts")] = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Set how many jobs of a queue may run; what runs already goes on.

    Parameters
    ----------
    max_running
        So many jobs of it run at once, 0 for any number.
    max_per_worker
        So many jobs of it run on one worker, 0 for any number.
    preempts
        Its jobs may take the place of preemptible ones of lower queues.
    """
    asked = QueueLimitsRequest(
        max_running=max_running, max_per_worker=max_per_worker, preempts=preempts
    )
    if asked == QueueLimitsRequest():
        raise InvalidInput("limit", "--max-running, --max-per-worker or --preempts", "none of them")
    print_change(at.call("POST", f"/api/v1/queues/{queue}/limits", Changed, asked), json)


@namespaces.command(name="list")
@namespaces.default
def list_namespaces(*, at: Connection = HERE, json: Json = False) -> None:
    """List namespaces whose weight was set; that of all others is 1."""
    found = at.call("GET", "/api/v1/namespaces/weights", NamespaceWeights).namespaces
    if json:
        print_json(found)
        return
    rows = [(space.name, space.weight) for space in found]
    print_table(("namespace", "weight"), rows, "no namespace has a weight of its own")


@namespaces.command(name="weight")
def set_weight(
    namespace: Namespace, weight: int, /, *, at: Connection = HERE, json: Json = False
) -> None:
    """Set the share of a namespace; it counts where the server runs with --fair-share.

    Parameters
    ----------
    weight
        From 1 to 1000: twice the weight, twice as many jobs of the same level at once.
    """
    asked = WeightRequest(weight=weight)
    print_change(at.call("POST", f"/api/v1/namespaces/{namespace}/weight", Changed, asked), json)


def _running(queue: QueueInfo) -> str | None:
    if queue.running is None:
        return None
    return f"{queue.running} of {queue.max_running}"

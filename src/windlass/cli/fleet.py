"""Commands about workers, queues, tokens and names."""

from typing import Any, TypeVar

import msgspec
from cyclopts import App

from windlass.cli.jobs import Json
from windlass.cli.output import console, print_json, print_table, say
from windlass.client.client import Client
from windlass.domain.errors import InvalidInput
from windlass.wire.access import CodeCreated, CodeRequest, TokenCreated, TokenList, TokenRequest
from windlass.wire.files import NameInfo, NameList, NameRequest
from windlass.wire.workers import Changed, QueueList, WorkerInfo, WorkerList

T = TypeVar("T")

workers = App(name="workers", help="Look at and manage workers.")
queues = App(name="queues", help="Look at, pause and resume queues.")
tokens = App(name="tokens", help="Make, list and revoke tokens.")
names = App(name="names", help="Set and list what `$lookup` finds.")


def _call(method: str, path: str, answer: type[T], body: Any = None, **query: Any) -> T:
    with Client() as client:
        transport = client.asynchronous.transport
        return client.run(transport.call(method, path, answer, body, query=query))


@workers.default
def list_workers(*, json: Json = False) -> None:
    """List workers."""
    found = _call("GET", "/api/v1/workers", WorkerList).workers
    if json:
        print_json(found)
        return
    rows = [(w.id, w.name, w.status, f"{w.held}/{w.slots}", w.last_seen, w.reason) for w in found]
    columns = ("id", "name", "status", "jobs", "last seen", "reason")
    print_table(columns, rows, "no workers: start one with `windlass worker`")


@workers.command(name="show")
def show_worker(worker: str, *, json: Json = False) -> None:
    """Show one worker and its metadata."""
    info = _find(worker)
    if json:
        print_json(info)
        return
    console.print(f"worker {info.id} {info.name}: {info.status}", style="bold")
    rows = [(key, msgspec.json.encode(value).decode()) for key, value in info.metadata.items()]
    print_table(("metadata", "value"), sorted(rows), "no metadata")


@workers.command
def approve(worker: str) -> None:
    """Let a worker that waits for it have jobs."""
    _act(worker, "approve")


@workers.command
def drain(worker: str) -> None:
    """Give a worker no new jobs."""
    _act(worker, "drain")


@workers.command
def enable(worker: str) -> None:
    """Let a drained or disabled worker have jobs again."""
    _act(worker, "enable")


@workers.command
def disable(worker: str) -> None:
    """Take a worker out of service."""
    _act(worker, "disable")


@workers.command
def remove(worker: str, *, force: bool = False) -> None:
    """Forget a worker; refused while it holds jobs unless forced."""
    info = _find(worker)
    flag = "true" if force else None
    _said(_call("DELETE", f"/api/v1/workers/{info.id}", Changed, force=flag))


@workers.command
def static(worker: str, metadata: str) -> None:
    """Set the metadata that operators decide, as a JSON object; it wins over the agent's."""
    info = _find(worker)
    try:
        body = msgspec.json.decode(metadata, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidInput("metadata", "a JSON object", str(error)) from None
    _said(_call("PUT", f"/api/v1/workers/{info.id}/static", Changed, body))


@workers.command
def code(*, expires: str = "1h", json: Json = False) -> None:
    """Make a code with which one worker may enrol, once."""
    made = _call("POST", "/api/v1/codes", CodeCreated, CodeRequest(expires=expires))
    if json:
        print_json(made)
    else:
        say(made.code)


@queues.default
def list_queues(*, json: Json = False) -> None:
    """List queues."""
    found = _call("GET", "/api/v1/queues", QueueList).queues
    if json:
        print_json(found)
        return
    rows = [(q.name, q.weight, "paused" if q.paused else "open", q.depth) for q in found]
    print_table(("queue", "weight", "state", "queued"), rows, "no queues yet")


@queues.command
def pause(queue: str) -> None:
    """Give out no more jobs of a queue."""
    _said(_call("POST", f"/api/v1/queues/{queue}/pause", Changed))


@queues.command
def resume(queue: str) -> None:
    """Give out jobs of a queue again."""
    _said(_call("POST", f"/api/v1/queues/{queue}/resume", Changed))


@tokens.default
def list_tokens(*, json: Json = False) -> None:
    """List tokens, without their secrets."""
    found = _call("GET", "/api/v1/tokens", TokenList).tokens
    if json:
        print_json(found)
        return
    rows = [
        (t.id, t.name, t.role, ", ".join(t.namespaces) or "all", t.created_at, t.expires_at,
         "revoked" if t.revoked_at else "valid")
        for t in found
    ]  # fmt: skip
    columns = ("id", "name", "role", "namespaces", "created", "expires", "state")
    print_table(columns, rows, "no tokens")


@tokens.command
def create(
    name: str,
    *,
    role: str = "submitter",
    namespace: list[str] | None = None,
    expires: str | None = None,
    json: Json = False,
) -> None:
    """Make a token and print its secret, this once."""
    request = TokenRequest(name=name, role=role, namespaces=tuple(namespace or ()), expires=expires)
    made = _call("POST", "/api/v1/tokens", TokenCreated, request)
    if json:
        print_json(made)
    else:
        say(made.token)


@tokens.command
def revoke(token: int) -> None:
    """Revoke a token; it stops working within one heartbeat."""
    _said(_call("DELETE", f"/api/v1/tokens/{token}", Changed))


@names.default
def list_names(*, json: Json = False) -> None:
    """List names and what they stand for."""
    found = _call("GET", "/api/v1/names", NameList).names
    if json:
        print_json(found)
        return
    rows = [(n.name, n.job, n.artifact, n.sha256[:12], n.set_at) for n in found]
    print_table(("name", "job", "artifact", "sha256", "set"), rows, "no names")


@names.command(name="set")
def set_name(name: str, artifact: str) -> None:
    """Let NAME stand for an artifact, given as JOB/NAME."""
    job, separator, file = artifact.partition("/")
    if not separator or not job.isdigit() or not file:
        raise InvalidInput("artifact", "JOB/NAME, such as 12/rootfs.tar", artifact)
    request = NameRequest(job=int(job), artifact=file)
    made = _call("PUT", f"/api/v1/names/{name}", NameInfo, request)
    say(f"{made.name} → {made.job}/{made.artifact}")


def _act(worker: str, action: str) -> None:
    info = _find(worker)
    _said(_call("POST", f"/api/v1/workers/{info.id}/{action}", Changed))


def _said(changed: Changed) -> None:
    say("done" if changed.applied else "nothing to do")


def _find(worker: str) -> WorkerInfo:
    """A worker by id or name."""
    found = _call("GET", "/api/v1/workers", WorkerList).workers
    for info in found:
        if worker in (str(info.id), info.name):
            return info
    known = ", ".join(info.name for info in found[:5]) or "none"
    raise InvalidInput("worker", f"the id or name of a worker ({known})", worker)

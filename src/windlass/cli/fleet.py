"""Commands about workers, tokens and names."""

from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from windlass.cli.connection import HERE, Connection
from windlass.cli.output import Flag, Json, console, print_change, print_json, print_table, say
from windlass.domain.values.errors import InvalidInput
from windlass.wire.access import CodeCreated, CodeRequest, TokenCreated, TokenList, TokenRequest
from windlass.wire.files import NameInfo, NameList, NameRequest
from windlass.wire.workers import Changed, WorkerInfo, WorkerList

BRIEF = 100

Worker = Annotated[str, Parameter(help="The worker's id or name.")]
Token = Annotated[int, Parameter(help="The token's id, as `windlass tokens` shows it.")]

workers = App(name="workers", help="Look at and manage workers.")
tokens = App(name="tokens", help="Make, list and revoke tokens.")
names = App(name="names", help="Set and list what `$lookup` finds.")


@workers.command(name="list")
@workers.default
def list_workers(*, at: Connection = HERE, json: Json = False) -> None:
    """List workers."""
    found = at.call("GET", "/api/v1/workers", WorkerList).workers
    if json:
        print_json(found)
        return
    rows = [(w.id, w.name, w.status, f"{w.held}/{w.slots}", w.last_seen, w.reason) for w in found]
    columns = ("id", "name", "status", "jobs", "last seen", "reason")
    print_table(columns, rows, "no workers: start one with `windlass worker`")


@workers.command(name="show")
def show_worker(worker: Worker, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Show one worker and its metadata."""
    info = _find(worker, at)
    if json:
        print_json(info)
        return
    console.print(f"worker {info.id} {info.name}: {info.status}", style="bold")
    rows = [(key, _brief(value)) for key, value in info.metadata.items()]
    print_table(("metadata", "value"), sorted(rows), "no metadata")


@workers.command
def approve(worker: Worker, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Let a worker that waits for it have jobs."""
    _act(worker, "approve", at, json)


@workers.command
def drain(worker: Worker, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Give a worker no new jobs."""
    _act(worker, "drain", at, json)


@workers.command
def enable(worker: Worker, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Let a drained or disabled worker have jobs again."""
    _act(worker, "enable", at, json)


@workers.command
def disable(worker: Worker, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Take a worker out of service."""
    _act(worker, "disable", at, json)


@workers.command
def remove(
    worker: Worker, /, *, force: Flag = False, at: Connection = HERE, json: Json = False
) -> None:
    """Forget a worker.

    Parameters
    ----------
    force
        Also while it holds jobs, which are then lost to it.
    """
    info = _find(worker, at)
    flag = "true" if force else None
    print_change(at.call("DELETE", f"/api/v1/workers/{info.id}", Changed, force=flag), json)


@workers.command
def static(worker: Worker, metadata: str, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Set the metadata that operators decide; it wins over the agent's.

    Parameters
    ----------
    metadata
        A JSON object.
    """
    info = _find(worker, at)
    try:
        body = msgspec.json.decode(metadata, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidInput("metadata", "a JSON object", str(error)) from None
    print_change(at.call("PUT", f"/api/v1/workers/{info.id}/static", Changed, body), json)


@workers.command(name="set")
def set_metadata(
    worker: Worker, /, *entries: str, at: Connection = HERE, json: Json = False
) -> None:
    """Set single entries of the metadata that operators decide; the others stay.

    Parameters
    ----------
    entries
        system:architectures=arm64,armhf, rack=7, …: a comma makes a list, and nothing
        after the sign takes the entry away, so that the agent's counts again.
    """
    if not entries:
        raise InvalidInput("entries", "KEY=VALUE, once or more", "none")
    info = _find(worker, at)
    body = dict(info.static)
    for text in entries:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise InvalidInput("entries", "KEY=VALUE", text)
        body.pop(key, None)
        if value:
            body[key] = _metadata_value(key, value)
    print_change(at.call("PUT", f"/api/v1/workers/{info.id}/static", Changed, body), json)


@workers.command
def code(*, expires: str = "1h", at: Connection = HERE, json: Json = False) -> None:
    """Make a code with which one worker may enrol, once.

    Parameters
    ----------
    expires
        How long it is good for.
    """
    made = at.call("POST", "/api/v1/codes", CodeCreated, CodeRequest(expires=expires))
    if json:
        print_json(made)
    else:
        say(made.code)


@tokens.command(name="list")
@tokens.default
def list_tokens(*, at: Connection = HERE, json: Json = False) -> None:
    """List tokens, without their secrets."""
    found = at.call("GET", "/api/v1/tokens", TokenList).tokens
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
    /,
    *,
    role: str = "submitter",
    namespace: list[str] | None = None,
    expires: str | None = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Make a token and print its secret, this once.

    Parameters
    ----------
    name
        What it is called in lists and in the audit.
    role
        viewer, submitter, operator, admin or worker.
    namespace
        Only what belongs to this namespace. May be given several times. Default: all.
    expires
        How long it is good for. Default: until it is revoked.
    """
    request = TokenRequest(name=name, role=role, namespaces=tuple(namespace or ()), expires=expires)
    made = at.call("POST", "/api/v1/tokens", TokenCreated, request)
    if json:
        print_json(made)
    else:
        say(made.token)


@tokens.command
def revoke(token: Token, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Revoke a token; it stops working within one heartbeat."""
    print_change(at.call("DELETE", f"/api/v1/tokens/{token}", Changed), json)


@names.command(name="list")
@names.default
def list_names(*, at: Connection = HERE, json: Json = False) -> None:
    """List names and what they stand for."""
    found = at.call("GET", "/api/v1/names", NameList).names
    if json:
        print_json(found)
        return
    rows = [(n.name, n.job, n.artifact, n.sha256[:12], n.set_at) for n in found]
    print_table(("name", "job", "artifact", "sha256", "set"), rows, "no names")


@names.command(name="set")
def set_name(name: str, artifact: str, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Let a name stand for an artifact.

    Parameters
    ----------
    name
        What jobs look up, such as environments/bookworm.
    artifact
        JOB/NAME, such as 12/rootfs.tar.
    """
    job, separator, file = artifact.partition("/")
    if not separator or not job.isdigit() or not file:
        raise InvalidInput("artifact", "JOB/NAME, such as 12/rootfs.tar", artifact)
    request = NameRequest(job=int(job), artifact=file)
    made = at.call("PUT", f"/api/v1/names/{name}", NameInfo, request)
    if json:
        print_json(made)
    else:
        say(f"{made.name} → {made.job}/{made.artifact}")


def _metadata_value(key: str, text: str) -> Any:
    """Numbers as numbers; what stands between commas, and architectures, as a list."""
    if "," in text or key == "system:architectures":
        return [_metadata_value("", part.strip()) for part in text.split(",") if part.strip()]
    if text in ("true", "false"):
        return text == "true"
    whole = text.removeprefix("-")
    return int(text) if whole.isascii() and whole.isdigit() and len(whole) < 19 else text


def _brief(value: Any) -> str:
    """A value on a line or two; some lists go on for pages."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= BRIEF else f"{text[:BRIEF]}… (--json shows all)"


def _act(worker: str, action: str, at: Connection, json: bool) -> None:
    info = _find(worker, at)
    print_change(at.call("POST", f"/api/v1/workers/{info.id}/{action}", Changed), json)


def _find(worker: str, at: Connection) -> WorkerInfo:
    """A worker by id or name."""
    found = at.call("GET", "/api/v1/workers", WorkerList).workers
    for info in found:
        if worker in (str(info.id), info.name):
            return info
    known = ", ".join(info.name for info in found[:5]) or "none"
    raise InvalidInput("worker", f"the id or name of a worker ({known})", worker)

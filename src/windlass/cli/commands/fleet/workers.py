"""`windlass workers`: show, approve, drain, configure and delete workers."""

from typing import Annotated, Any, Final

import msgspec
from cyclopts import App, Parameter

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Flag, Json, Misused
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import BOLD, print_answer, print_change, print_json, say
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.names import did_you_mean
from windlass.messages.access import CodeCreated, CodeRequest
from windlass.messages.workers import Changed, WorkerInfo, WorkerList

MAX_VALUE: Final = 100
NAMES_SHOWN: Final = 5

Worker = Annotated[str, Parameter(help="The worker's id or name.")]

workers = App(name="workers", help="Show, approve, drain, disable and delete workers.")


@workers.command(name="list")
@workers.default
def list_workers(*, at: Connection = HERE, json: Json = False) -> None:
    """List workers."""
    found = at.call("GET", "/api/v1/workers", WorkerList).workers
    if json:
        print_json(found)
        return
    columns = ["id", "name", "status", "jobs", "last seen", "reason"]
    rows: list[list[Any]] = [
        [w.id, w.name, w.status, f"{w.held}/{w.slots}", w.last_seen, w.reason] for w in found
    ]
    if any(w.indices for w in found):
        columns.insert(4, "indices in use")
        for row, info in zip(rows, found, strict=True):
            row.insert(4, _in_use(info))
    print_table(columns, rows, "no workers: start one with `windlass worker`")


@workers.command(name="show")
def show_worker(worker: Worker, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Show a worker and its metadata."""
    info = _find(worker, at)
    if json:
        print_json(info)
        return
    say(f"worker {info.id} {info.name}: {info.status}", BOLD)
    if info.indices:
        print_table(("resource", "index", "job"), _index_rows(info), "")
        say("")
    rows = [(key, _brief(value)) for key, value in info.metadata.items()]
    print_table(("metadata", "value"), sorted(rows), "no metadata")


def _index_rows(info: WorkerInfo) -> list[tuple[str, str, Any]]:
    """Lists every index with the job that holds it, free ones last."""
    return [
        (resource, index, job)
        for resource, its in info.indices.items()
        for index, job in (*its.held.items(), *((index, "free") for index in its.free))
    ]


def _in_use(info: WorkerInfo) -> str:
    """Shows which indices jobs hold: gpus 0, 3 (2 of 4)."""
    return "; ".join(
        f"{resource} {', '.join(its.held) or 'none'}"
        f" ({len(its.held)} of {len(its.held) + len(its.free)})"
        for resource, its in info.indices.items()
    )


@workers.command
def approve(worker: Worker, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Approve a new worker, so that it gets jobs."""
    _act(worker, "approve", at, json)


@workers.command
def drain(worker: Worker, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Give a worker no new jobs; running ones finish."""
    _act(worker, "drain", at, json)


@workers.command
def enable(worker: Worker, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Give jobs to a drained or disabled worker again."""
    _act(worker, "enable", at, json)


@workers.command
def disable(worker: Worker, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Take a worker out of service."""
    _act(worker, "disable", at, json)


@workers.command(name="delete")
def delete_worker(
    worker: Worker, /, *, force: Flag = False, at: Connection = HERE, json: Json = False
) -> None:
    """Delete a worker.

    Parameters
    ----------
    force
        Delete it even if it holds jobs; they are then treated as lost.
    """
    info = _find(worker, at)
    flag = "true" if force else None
    print_change(at.call("DELETE", f"/api/v1/workers/{info.id}", Changed, force=flag), json)


workers.command(delete_worker, name="remove", show=False)


@workers.command
def static(worker: Worker, metadata: str, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Replace the metadata that operators set; it overrides what the agent reports.

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


@workers.command(name="set", usage="Usage: windlass workers set [OPTIONS] WORKER KEY=VALUE...")
def set_metadata(
    worker: Worker, /, *entries: str, at: Connection = HERE, json: Json = False
) -> None:
    """Set single entries of the metadata that operators set; other entries stay.

    Parameters
    ----------
    entries
        KEY=VALUE, such as system:architectures=arm64,armhf or rack=7. A comma makes a list. An
        empty value removes the entry, so that the agent's own applies again.
    """
    if not entries:
        raise Misused("nothing to set: give KEY=VALUE")
    info = _find(worker, at)
    body: dict[str, Any] = {}
    for text in entries:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise InvalidInput("an entry", "KEY=VALUE", text)
        body[key] = _metadata_value(key, value) if value else None
    print_change(at.call("PATCH", f"/api/v1/workers/{info.id}/static", Changed, body), json)


@workers.command
def code(
    *,
    expires: str = "1h",
    worker: str | None = None,
    takeover: Flag = False,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Create a single-use code with which one worker may enrol.

    Parameters
    ----------
    expires
        How long the code is valid.
    worker
        The only name under which a worker may enrol with it. Default: any.
    takeover
        Take over the name of a worker that still counts as alive. If its process is running, it is
        told to stop. Its jobs run again.
    """
    asked = CodeRequest(expires=expires, worker=worker, takeover=takeover)
    made = at.call("POST", "/api/v1/codes", CodeCreated, asked)
    print_answer(made, json, made.code)


def _metadata_value(key: str, text: str) -> Any:
    """Reads numbers as numbers, and architectures and comma-separated values as lists."""
    from windlass.domain.tasks.worker_lists import LISTS

    if key in LISTS:  # A name may consist of digits.
        return [part.strip() for part in text.split(",") if part.strip()]
    if "," in text or key == "system:architectures":
        return [_metadata_value("", part.strip()) for part in text.split(",") if part.strip()]
    if text in ("true", "false"):
        return text == "true"
    whole = text.removeprefix("-")
    return int(text) if whole.isascii() and whole.isdigit() and len(whole) < 19 else text


def _brief(value: Any) -> str:
    """Cuts a long value."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}… (--json shows all)"


def _act(worker: str, action: str, at: Connection, json: bool) -> None:
    info = _find(worker, at)
    print_change(at.call("POST", f"/api/v1/workers/{info.id}/{action}", Changed), json)


def _find(worker: str, at: Connection) -> WorkerInfo:
    """Finds a worker by id or name."""
    found = at.call("GET", "/api/v1/workers", WorkerList).workers
    for info in found:
        if worker in (str(info.id), info.name):
            return info
    names = [info.name for info in found]
    known = f"known: {', '.join(names[:NAMES_SHOWN]) or 'none'}"
    raise NotFound("worker", worker, did_you_mean(worker, names) or known)

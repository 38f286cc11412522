"""`windlass db` upgrades, backs up and restores the database, and lets roles submit in it.

`windlass verify` checks what is in it.
"""

import asyncio
import os
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final
from urllib.parse import urlsplit

from cyclopts import App, Parameter

from windlass.cli.options.configuration import DEFAULT, ConfigFile, load_settings
from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Flag, Json, Many, Misused
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_answer, print_json, say, warn
from windlass.client.settings import data_directory
from windlass.domain.access.rights import parse_role
from windlass.domain.config import Config
from windlass.domain.values.addresses import without_password
from windlass.domain.values.errors import InvalidInput, Unreachable
from windlass.domain.values.names import check_name
from windlass.domain.values.quantities import format_moment, readable_size
from windlass.messages.system import Verified

Store = Annotated[
    str | None,
    Parameter(
        help="sqlite:///path or postgresql://… Default: the SQLite database in the data directory."
    ),
]
Data = Annotated[
    Path | None,
    Parameter(help="The data directory. Default: WINDLASS_DATA, else ~/.local/share/windlass."),
]

HOLD_OPTIONS: Final = ("heartbeat_timeout", "term_grace")  # how long a lost worker's jobs may run
VERIFY_SECONDS: Final = 600

database = App(name="db", help="Upgrade, back up and restore the database.")


@database.command
def upgrade(*, store: Store = None, data: Data = None, json: Json = False) -> None:
    """Upgrade the database schema; servers on SQLite do so when they start."""
    from windlass.assembly.stores import upgrade_store

    asyncio.run(upgrade_store(store_url(store, data)))
    print_answer({"upgraded": True}, json, "the schema is up to date")


@database.command
def backup(file: Path, /, *, store: Store = None, data: Data = None, json: Json = False) -> None:
    """Back up the SQLite database; its server may keep running.

    A damaged database is not backed up. For PostgreSQL, use pg_dump.

    Parameters
    ----------
    file
        The new file to write the copy to.
    """
    from windlass.store.sqlite.backup import back_up

    url = store_url(store, data)
    _check_file(url, file)
    check_exists(url)
    back_up(Path(urlsplit(url).path), file)
    size = file.stat().st_size
    answer = {"file": str(file), "bytes": size}
    print_answer(answer, json, f"{file}: {readable_size(size)}")


@database.command
def restored(
    *, store: Store = None, data: Data = None, config: ConfigFile = None, json: Json = False
) -> None:
    """Begin a new epoch after restoring a backup, before you start servers again.

    Workers know of jobs that the backup does not. In the new epoch they stop those jobs, and the
    server refuses reports about them. No job starts until then: for `heartbeat_timeout` +
    `term_grace` of the server that started last, or as set here by --config or the environment.
    """
    from windlass.assembly.stores import begin_epoch_of

    url = store_url(store, data)
    check_exists(url)
    settings = load_settings({}, os.environ, config)
    own = any(settings.by_name[name].source != DEFAULT for name in HOLD_OPTIONS)
    begun = asyncio.run(begin_epoch_of(url, settings.config, own))
    until = format_moment(begun.hold_until)
    text = f"epoch {begun.epoch} has begun; jobs start again at {until}"
    print_answer({"epoch": begun.epoch, "hold_until": until}, json, text)


@database.command
def copy(
    source: str,
    target: str,
    /,
    *,
    blobs_from: str | None = None,
    blobs_to: str | None = None,
    json: Json = False,
) -> None:
    """Copy a store from SQLite to PostgreSQL or back: all jobs, history, leases, ids and epochs.

    Stop the servers of both first. Workers run on for `heartbeat_timeout`, and continue when the
    servers of the target start at the same address. An interrupted copy leaves the target empty:
    run it again. Afterwards servers refuse to start on the source.

    Parameters
    ----------
    source
        sqlite:///path or postgresql://…
    target
        The other one, an empty database.
    blobs_from
        Where logs and artifacts are, if they are to be copied: file:///directory or
        s3://bucket/prefix. What the target has already is not copied again.
    blobs_to
        Where to copy them.
    """
    from windlass.assembly.copying import copy_all

    if (blobs_from is None) != (blobs_to is None):
        raise Misused("--blobs-from and --blobs-to go together")
    check_exists(source)
    blobs = None if blobs_from is None or blobs_to is None else (blobs_from, blobs_to)
    tables, files = asyncio.run(copy_all(source, target, blobs))
    if json:
        print_json({
            "tables": [one._asdict() for one in tables], "files": files[0], "bytes": files[1],
        })  # fmt: skip
        return
    rows = [(one.name, one.rows, one.digest[:16]) for one in tables if one.rows]
    print_table(("table", "rows", "digest"), rows, "the store was empty")
    say(f"both sides have the same rows; {readable_size(files[1])} of logs and artifacts copied")


@database.command
def token(
    name: str,
    /,
    *,
    role: str = "admin",
    file: Path | None = None,
    store: Store = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Create a token in the store without a server, such as the first one.

    A server on an address that others can reach starts only if there is a token.

    Parameters
    ----------
    name
        Its name in lists and in the log.
    role
        viewer, submitter, operator or admin.
    file
        Where to write it, instead of printing it. A valid token in that file is kept.
    """
    from windlass.assembly.server import create_token_in

    secret = asyncio.run(
        create_token_in(store_url(store, data), config_from(None), name, parse_role(role), file)
    )
    if json:
        print_json({"name": name, "token": secret})
    elif file is None:
        say(secret)


def _check_file(url: str, file: Path) -> None:
    """Raises `InvalidInput` unless the store is a file; tells how to back up PostgreSQL."""
    scheme, address = urlsplit(url).scheme, without_password(url)
    if scheme == "sqlite":
        return
    if scheme not in ("postgresql", "postgres"):
        raise InvalidInput("store", "sqlite:///path", address)
    hint = (
        f"run `pg_dump --format=custom --file={file} {address}` instead; to restore it, stop the "
        f"servers, run `pg_restore --clean --if-exists --dbname={address} {file}` and then "
        f"`windlass db restored --store {address}`"
    )
    raise InvalidInput("store", "an SQLite database", address, hint)


def store_url(store: str | None, data: Path | None) -> str:
    url = store or embedded_store(data)
    if url is None:
        where = data_directory(data)
        raise Misused(f"{where} has no database: give --store")
    return url


def check_exists(store: str) -> None:
    """Raises if there is no database: opening it would create one, which looks correct."""
    parts = urlsplit(store)
    if parts.scheme == "sqlite" and not Path(parts.path).is_file():
        raise InvalidInput("store", "an existing database", store)


def config_from(file: Path | None) -> Config:
    """Returns the core's configuration from a file and the environment."""
    return load_settings({}, os.environ, file).config


def embedded_store(data: Path | None) -> str | None:
    """Returns the address of the store that `windlass up` created in a data directory."""
    path = (data_directory(data) / "windlass.db").absolute()
    return f"sqlite://{path}" if path.exists() else None


@database.command
def allow_submit(
    role: str,
    /,
    *,
    namespace: Many = None,
    all_namespaces: Flag = False,
    store: Store = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Let a role of PostgreSQL submit jobs in its own transactions.

    It gets no right on any table: it cannot read jobs. Name all its namespaces: they replace
    those it had. Needs the address of the schema's owner.

    Parameters
    ----------
    role
        The role that the application logs in with.
    namespace
        A namespace it may submit to. Repeatable.
    all_namespaces
        It may submit to every namespace.
    """
    submitters = _submitters()
    named = namespace or []
    if bool(named) == all_namespaces:
        raise Misused("give either --namespace, once for each namespace, or --all-namespaces")
    for name in named:
        check_name("--namespace", name)
        if name == "*":
            raise InvalidInput("--namespace", "a name; or use --all-namespaces", name)
    chosen = submitters.EVERYWHERE if all_namespaces else named
    asyncio.run(submitters.allow_submit(_address(store, data), role, chosen))
    if json:
        print_json({"role": role, "namespaces": named, "all_namespaces": all_namespaces})
    else:
        where = "every namespace" if all_namespaces else ", ".join(named)
        say(f"{role} may submit to {where}")


@database.command
def deny_submit(
    role: str, /, *, store: Store = None, data: Data = None, json: Json = False
) -> None:
    """Revoke a role's right to submit; what it has already committed still runs.

    Parameters
    ----------
    role
        The role that was allowed to submit.
    """
    submitters = _submitters()
    asyncio.run(submitters.forbid_submit(_address(store, data), role))
    print_answer({"role": role, "denied": True}, json, f"{role} may not submit any more")


@database.command(name="submitters")
def list_submitters(*, store: Store = None, data: Data = None, json: Json = False) -> None:
    """List the roles of PostgreSQL that may submit in their own transactions."""
    submitters = _submitters()
    found = asyncio.run(submitters.submitters(_address(store, data)))
    if json:
        print_json([
            {"role": row.role, "namespaces": list(row.namespaces),
             "all_namespaces": not row.namespaces}
            for row in found
        ])  # fmt: skip
        return
    rows = [(row.role, ", ".join(row.namespaces) or "all") for row in found]
    print_table(("role", "namespaces"), rows, "no role but the owner of the schema may submit")


def _submitters() -> ModuleType:
    """Returns the module that talks to the database, if its driver is installed."""
    from windlass.domain.values.errors import needs

    with needs("postgres"):
        from windlass.store.postgres import submitters

    return submitters


def _address(store: str | None, data: Path | None) -> str:
    """Returns the address of a database; files have no roles."""
    from windlass.assembly.stores import is_postgres

    url = store_url(store, data)
    if not is_postgres(url):
        raise InvalidInput("store", "postgresql://…: files of SQLite have no roles", url)
    return url


def verify(
    *,
    store: str | None = None,
    config: ConfigFile = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Replay the event log and check the invariants.

    The server does it; if none runs, this command does.

    Parameters
    ----------
    store
        Check this store without a server. Default: ask the server; if none runs, check the
        SQLite database in the data directory.
    """
    found = _verify(store, config, at)
    if json:
        print_json(found)
    elif not found.violations:
        say("no violations: replaying the log gives the stored state, and the invariants hold")
    else:
        rows = [(v.invariant, v.job or "", v.seq or "", v.message) for v in found.violations]
        print_table(("invariant", "job", "seq", "message"), rows, "")
    for note in () if json else found.notes:
        say(f"known loss: {note}")
    if found.violations:
        raise SystemExit(FAILED)


def _verify(store: str | None, config: Path | None, at: Connection) -> Verified:
    if store is not None:
        check_exists(store)
        return _verify_here(store, config)
    try:
        return at.call("POST", "/api/v1/verify", Verified, timeout=VERIFY_SECONDS)
    except Unreachable:
        embedded = embedded_store(at.data)
        if at.server or os.environ.get("WINDLASS_SERVER") or embedded is None:
            raise
    warn(f"no server is running; checking {embedded}")
    return _verify_here(embedded, config)


def _verify_here(store: str, config: Path | None) -> Verified:
    from windlass.assembly.stores import verify_store

    return asyncio.run(verify_store(store, config_from(config)))

"""Commands that look after a store: db upgrade, backup and restored, verify."""

import asyncio
import os
from pathlib import Path
from urllib.parse import urlsplit

from cyclopts import App

from windlass.cli.configuration import load_settings
from windlass.cli.connection import HERE, Connection
from windlass.cli.core import ConfigFile
from windlass.cli.output import FAILED, Json, errors, print_json, print_table, say
from windlass.client.settings import data_directory
from windlass.domain.config import Config
from windlass.domain.values.errors import InvalidInput, Unreachable
from windlass.domain.values.quantities import format_size
from windlass.domain.values.times import format_moment
from windlass.store.sqlite.backup import back_up
from windlass.wire.system import Verified
from windlass.wiring.stores import begin_epoch_of, upgrade_store, verify_store

VERIFY_SECONDS = 600

database = App(name="db", help="Look after the database.")


@database.command
def upgrade(*, store: str | None = None, data: Path | None = None, json: Json = False) -> None:
    """Bring a database's schema up to date; servers on SQLite do so by themselves.

    Parameters
    ----------
    store
        sqlite:///path or postgresql://… Default: the embedded one in the data directory.
    data
        The data directory. Default: WINDLASS_DATA, else one in your home.
    """
    asyncio.run(upgrade_store(_named(store, data)))
    if json:
        print_json({"upgraded": True})
    else:
        say("up to date")


@database.command
def backup(file: Path, /, *, data: Path | None = None, json: Json = False) -> None:
    """Copy the embedded database as it is at this moment; its server may go on.

    Parameters
    ----------
    file
        The copy, a new file.
    data
        The data directory. Default: WINDLASS_DATA, else one in your home.
    """
    url = _named(None, data)
    back_up(Path(urlsplit(url).path), file)
    if json:
        print_json({"file": str(file), "bytes": file.stat().st_size})
    else:
        say(f"{file}: {format_size(file.stat().st_size)}")


@database.command
def restored(
    *,
    store: str | None = None,
    data: Path | None = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Begin a new epoch, after a backup was put back and before servers are started again.

    Workers remember what the backup does not know. In the new epoch they stop what they still
    run, and what they report of the time before is refused. Until that is sure, no job starts.

    Parameters
    ----------
    store
        sqlite:///path or postgresql://… Default: the embedded one in the data directory.
    data
        The data directory. Default: WINDLASS_DATA, else one in your home.
    """
    url = _named(store, data)
    _check_existing(url)
    begun = asyncio.run(begin_epoch_of(url, _config(config)))
    if json:
        print_json({"epoch": begun.epoch, "hold_until": format_moment(begun.hold_until)})
    else:
        say(f"epoch {begun.epoch} has begun; jobs start again at {format_moment(begun.hold_until)}")


def _named(store: str | None, data: Path | None) -> str:
    url = store or _embedded(data)
    if url is None:
        where = data_directory(data)
        raise InvalidInput("store", f"given, since there is none in {where}", "nothing")
    return url


def verify(
    *,
    store: str | None = None,
    config: ConfigFile = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Replay the log and check the invariants, by the server or, with none running, here.

    Parameters
    ----------
    store
        Check this store here, without a server. Default: ask the server; if none runs,
        check the embedded store of the data directory.
    """
    found = _verify(store, config, at)
    if json:
        print_json(found)
    elif not found.violations:
        say("nothing wrong: the log replays to the state, the invariants hold")
    else:
        rows = [(v.invariant, v.job or "", v.seq or "", v.message) for v in found.violations]
        print_table(("invariant", "job", "seq", "message"), rows, "")
    if found.violations:
        raise SystemExit(FAILED)


def _verify(store: str | None, config: Path | None, at: Connection) -> Verified:
    if store is not None:
        _check_existing(store)
        return asyncio.run(verify_store(store, _config(config)))
    try:
        return at.call("POST", "/api/v1/verify", Verified, timeout=VERIFY_SECONDS)
    except Unreachable:
        embedded = _embedded(at.data)
        if at.server or os.environ.get("WINDLASS_SERVER") or embedded is None:
            raise
    errors.print(f"no server runs; checking {embedded}", highlight=False, soft_wrap=True)
    return asyncio.run(verify_store(embedded, _config(config)))


def _check_existing(store: str) -> None:
    """Opening a database that does not exist would make one, and find nothing wrong with it."""
    parts = urlsplit(store)
    if parts.scheme == "sqlite" and not Path(parts.path).is_file():
        raise InvalidInput("store", "an existing database", store)


def _config(file: Path | None) -> Config:
    return load_settings({}, os.environ, file).config


def _embedded(data: Path | None) -> str | None:
    """The store that `windlass up` made in a data directory."""
    path = (data_directory(data) / "windlass.db").absolute()
    return f"sqlite://{path}" if path.exists() else None

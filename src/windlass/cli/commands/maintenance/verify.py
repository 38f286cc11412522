"""`windlass verify`."""

import asyncio
import os
from pathlib import Path
from typing import Final

from windlass.cli.commands.maintenance.db import check_exists, config_from, embedded_store
from windlass.cli.options.configuration import ConfigFile
from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Json
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_json, say, warn
from windlass.domain.values.errors import Unreachable
from windlass.messages.system import Verified

VERIFY_SECONDS: Final = 600


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

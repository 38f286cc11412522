"""Opens a file to hold it, also while an embedded client holds it in place of the server.

An embedded client takes a file over when its server has been away for a while. Without this
the server could not start again until that client's program ends.
"""

from pathlib import Path
from typing import Final

from windlass.domain.values.errors import StoreUnavailable
from windlass.ports.clock import Clock
from windlass.store.sqlite.channel import ask_for_file
from windlass.store.sqlite.file_lock import STAND_IN, holding
from windlass.store.sqlite.store import SqliteStore

GIVING_S: Final = 60.0  # for its running jobs to end or to be handed back
TRIES: Final = 250  # after it has hung up, until its lock is free
PAUSE_MS: Final = 20


async def open_held(path: Path, clock: Clock, blobs: str, restored: bool = False) -> SqliteStore:
    """Opens a file as a server; an embedded client in its place gives it back first."""
    asked = holding(path).kind == STAND_IN and await ask_for_file(path, GIVING_S)
    tries_left = TRIES if asked else 0
    while True:
        try:
            return SqliteStore.open(path, clock, server="s1", blobs=blobs, restored=restored)
        except StoreUnavailable as error:
            if error.code != "store_locked" or not tries_left:
                raise
        tries_left -= 1
        await clock.sleep_ms(PAUSE_MS)

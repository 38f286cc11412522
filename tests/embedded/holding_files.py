"""Who holds a file, and what is in it, seen from beside its clients."""

import os
from pathlib import Path

from windlass.clock import RealClock
from windlass.engine.verify import verify
from windlass.engine.verify.past import Violation
from windlass.store.sqlite.file_lock import EMBEDDED, STAND_IN, holding
from windlass.store.sqlite.store import SqliteStore


def leads(path: Path | str) -> bool:
    """Whether an embedded client of this process holds the file."""
    held = holding(Path(path))
    return held.process == str(os.getpid()) and held.kind in (EMBEDDED, STAND_IN)


async def violations(path: Path) -> list[Violation]:
    """What `verify` finds in a file that may be in use."""
    guest = SqliteStore.open(path, RealClock(), exclusive=False)
    try:
        return await verify(guest)
    finally:
        await guest.close()

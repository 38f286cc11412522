"""Large submissions without the garbage collector.

They make a million objects that all stay until the commit. The collector would walk them
again and again and find nothing: a third of the time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MANY: Final = 5_000  # jobs from which on it is worth it

_calm: list[bool] = []  # one entry for each who asked: whether the collector ran before


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep the collector away; the last one to leave lets it go on."""
    _calm.append(gc.isenabled() if not _calm else _calm[0])
    gc.disable()
    try:
        yield
    finally:
        ran = _calm.pop()
        if not _calm and ran:
            gc.enable()

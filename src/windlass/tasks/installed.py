"""What installed packages bring, by the entry points that they declare."""

import sys
from functools import lru_cache
from importlib.metadata import EntryPoints, entry_points


def installed(group: str) -> EntryPoints:
    """Returns the entry points of a group, from all packages on the search path of now.

    A process reads them once for each search path: it takes a file of every package.
    """
    return _read(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _read(group: str, path: tuple[str, ...]) -> EntryPoints:
    del path  # what is found depends on it
    return entry_points(group=group)

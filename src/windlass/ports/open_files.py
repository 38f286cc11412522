"""Which database files the engine has open in this process."""

from pathlib import Path
from typing import Final

_OPEN: Final[dict[Path, int]] = {}  # how often


def note_open(path: Path) -> None:
    """Notes that the engine has opened a file."""
    own = path.resolve()
    _OPEN[own] = _OPEN.get(own, 0) + 1


def note_closed(path: Path) -> None:
    """Notes that the engine has closed it again."""
    own = path.resolve()
    left = _OPEN.pop(own, 0) - 1
    if left > 0:
        _OPEN[own] = left


def is_open_here(path: Path) -> bool:
    """Returns whether the engine has this file open in this process."""
    return path.resolve() in _OPEN

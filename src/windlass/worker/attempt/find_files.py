"""Finds the files of a scratch folder that match a glob, in one walk that lets the loop run.

The time grows with the number of files, not with the wildcards of the pattern: each folder is read
once, with all positions in the pattern that may apply.
"""

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import InvalidInput
from windlass.ports.clock import Clock

MAX_ENTRIES: Final = 1_000_000
PAUSE_AFTER: Final = 500  # entries, about a millisecond

_ANY_DEPTH: Final = "**"

Part = Callable[[str], object] | None  # None: any number of folders
Positions = frozenset[int]


async def find_files(folder: Path, pattern: str, clock: Clock) -> list[tuple[str, Path]]:
    """Returns name and path of the matching files below `folder`, in order.

    Files outside of it are left out, whatever links point to. Raises `InvalidInput` if there are
    too many entries to walk.
    """
    names: list[str] = []
    for count, name in enumerate(_walk(folder, _parts(pattern))):
        if count >= MAX_ENTRIES:
            raise InvalidInput("artifacts", f"found among at most {MAX_ENTRIES:,} files", pattern)
        if count % PAUSE_AFTER == PAUSE_AFTER - 1:
            await clock.sleep_ms(0)
        if name is not None:
            names.append(name)
    return list(_inside(folder, sorted(names)))


def _inside(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, Path]]:
    root = folder.resolve()
    for name in names:
        path = (root / name).resolve()
        if path.is_relative_to(root) and path.is_file():
            yield name, path


def _parts(pattern: str) -> Sequence[Part]:
    words = [word for word in pattern.split("/") if word not in ("", ".")]
    return [
        None if word == _ANY_DEPTH else re.compile(fnmatch.translate(word)).match
        for number, word in enumerate(words)
        if word != _ANY_DEPTH or words[number - 1 : number] != [_ANY_DEPTH]
    ]


def _walk(folder: Path, parts: Sequence[Part]) -> Iterator[str | None]:
    """Yields each visited entry: its name if it matches, else None."""
    root = folder.resolve()
    waiting = [("", _reach(parts, {0}))]
    while waiting:
        below, positions = waiting.pop()
        for entry in _entries(root / below):
            name = f"{below}{entry.name}"
            is_folder = _is_folder(entry, root)
            # `**` does not follow links to folders, so a circular walk ends with the pattern.
            deeper = not (is_folder and entry.is_symlink())
            after = _advance(parts, positions, entry.name, deeper)
            if is_folder and any(position < len(parts) for position in after):
                waiting.append((f"{name}/", after))
            yield name if not is_folder and len(parts) in after else None


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return  # gone, not readable or too deep


def _is_folder(entry: "os.DirEntry[str]", root: Path) -> bool:
    """Returns whether it is a folder inside of `root`, or a link to one."""
    if not entry.is_symlink():
        return entry.is_dir()
    target = Path(os.path.realpath(entry.path))
    return target.is_relative_to(root) and target.is_dir()


def _advance(parts: Sequence[Part], positions: Positions, name: str, deeper: bool) -> Positions:
    after: set[int] = set()
    for position in positions:
        if position == len(parts):
            continue
        part = parts[position]
        if part is None:
            after |= {position} if deeper else set()
        elif part(name):
            after.add(position + 1)
    return _reach(parts, after)


def _reach(parts: Sequence[Part], positions: set[int]) -> Positions:
    """Adds the positions after each `**`, which may match no folder at all."""
    for position in sorted(positions):
        if position < len(parts) and parts[position] is None:
            positions.add(position + 1)
    return frozenset(positions)

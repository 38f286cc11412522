"""Which folders of the machine a sandbox shows, so that Python functions can run in it."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from windlass.worker.isolation.sandbox import SYSTEM, Visible

SOURCES: Final = Path(__file__).parents[3]


def visible_folders(shared: Iterable[Path], hidden: Iterable[Path]) -> Visible:
    """Returns them: this Python, what it imports from, and what the operator shares.

    Functions are also imported from the directory that the worker was started in, so it is
    visible, unless it holds somebody's home.
    """
    here = Path.cwd()
    found = list(own_python())
    found += [Path(entry) for entry in sys.path if entry and Path(entry) != here]
    found += [] if _holds_home(here) else [here]
    found += shared
    return Visible(_outermost(found), tuple(path.absolute() for path in hidden))


def own_python() -> tuple[Path, ...]:
    """Returns the folders of the Python that runs the worker, and of Windlass."""
    return Path(sys.prefix), Path(sys.base_prefix), SOURCES


def _outermost(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Returns those that no other shows already: each costs the start of a job some time."""
    there = {folder.absolute() for folder in folders if os.path.exists(folder)} - {Path("/")}
    kept: list[Path] = []
    for folder in sorted(there, key=lambda path: (len(path.parts), path)):
        if not any(folder.is_relative_to(other) for other in (*map(Path, SYSTEM), *kept)):
            kept.append(folder)
    return tuple(kept)


def _holds_home(folder: Path) -> bool:
    """Returns whether a home is this folder or in it."""
    home = Path(os.path.realpath(os.environ.get("HOME", "/")))
    return home.is_relative_to(folder) or Path("/home").is_relative_to(folder)

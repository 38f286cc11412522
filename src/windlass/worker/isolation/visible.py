"""Which folders of the machine a sandbox shows, so that Python functions can run in it."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from windlass.worker.isolation.sandbox import Visible

SOURCES: Final = Path(__file__).parents[3]


def visible_folders(shared: Iterable[Path], hidden: Iterable[Path]) -> Visible:
    """Returns them: this Python, what it imports from, and what the operator shares.

    Functions are also imported from the directory that the worker was started in, so it is
    visible, unless it holds somebody's home.
    """
    here = Path.cwd()
    found = [Path(sys.prefix), Path(sys.base_prefix), SOURCES]
    found += [Path(entry) for entry in sys.path if entry and Path(entry) != here]
    found += [] if _holds_home(here) else [here]
    found += shared
    kept = {path.absolute(): None for path in found if os.path.exists(path) and path != Path("/")}
    return Visible(tuple(kept), tuple(path.absolute() for path in hidden))


def _holds_home(folder: Path) -> bool:
    """Returns whether a home is this folder or in it."""
    home = Path(os.environ.get("HOME", "/"))
    return home.is_relative_to(folder) or Path("/home").is_relative_to(folder)

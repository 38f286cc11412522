"""Which folders of the machine a sandbox shows, so that Python functions can run in it."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from windlass.worker.isolation.sandbox import Visible

SOURCES: Final = Path(__file__).parents[3]


def visible_folders(
    shared: Iterable[Path], hidden: Iterable[Path], working_directory: bool
) -> Visible:
    """Returns them: this Python, what it imports from, and what the operator shares.

    The working directory is among them only if modules of jobs are imported from there: often
    it is somebody's home.
    """
    here = os.getcwd()
    found = [Path(sys.prefix), Path(sys.base_prefix), SOURCES]
    found += [Path(entry) for entry in sys.path if entry not in ("", here)]
    found += [Path(here)] if working_directory else []
    found += shared
    kept = {path.absolute(): None for path in found if path.exists() and path != Path("/")}
    return Visible(tuple(kept), tuple(path.absolute() for path in hidden))

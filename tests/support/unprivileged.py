"""What programs of other users can use, also where the tests are run by root."""

import os
import stat
import sys
from pathlib import Path


def is_open(path: Path) -> bool:
    """Whether every user can reach a file and read it."""
    real = path.resolve()
    passable = all(folder.stat().st_mode & stat.S_IXOTH for folder in real.parents)
    return passable and bool(real.stat().st_mode & stat.S_IROTH)


def open_python() -> str:
    """A Python that every user can start; it need not have our packages."""
    if is_open(Path(sys.executable)):
        return sys.executable
    for place in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(place).exists() and is_open(Path(place)):
            return place
    raise FileNotFoundError("expected a Python that every user can start, in /usr/bin")


def skip_reason(mode: str) -> str | None:
    """Why the tests of a mode of isolation cannot be run here; None if they can."""
    if mode == "user" and os.geteuid() != 0:
        return "only root can start jobs as other users"
    return None

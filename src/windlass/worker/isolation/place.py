"""Where other users find what is theirs, if the worker is root and gives jobs uids of their own.

The worker's state directory is closed to them, and it may be below a home directory that is
closed as well.
"""

import hashlib
import os
import shutil
import stat
from pathlib import Path
from typing import Final

ROOT: Final = Path("/var/lib/windlass")
PASSABLE: Final = 0o711  # others can pass through a folder, but not list it


class UserPlace:
    """A folder for the scratch directories of jobs and the socket by which they submit others.

    Others can pass through it, but not list it.
    """

    def __init__(self, state: Path, root: Path = ROOT) -> None:
        self._root = root
        self.path = root / hashlib.sha256(os.fsencode(state)).hexdigest()[:16]

    @property
    def scratch(self) -> Path:
        """Where the folders of jobs are."""
        return self.path / "scratch"

    def open(self) -> None:
        """Makes it; raises `OSError`."""
        for folder in (self._root, self.path):
            folder.mkdir(mode=PASSABLE, parents=True, exist_ok=True)
            found = folder.lstat()
            if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
                raise PermissionError(1, f"{folder} belongs to another user")
            folder.chmod(PASSABLE)

    def close(self) -> None:
        """Removes it."""
        shutil.rmtree(self.path, ignore_errors=True)

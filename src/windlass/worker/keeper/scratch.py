"""Folders for attempts: made when first needed, reused when they were left empty.

Making and removing a folder costs more than starting a small program, so an attempt that leaves
nothing behind costs neither.
"""

from collections.abc import Callable
from pathlib import Path


class Scratch:
    """The folders below one root; the keeper makes them, `remove` removes them.

    `mode` is the permission mode of the root.
    """

    def __init__(self, root: Path, remove: Callable[[Path], None], mode: int = 0o700) -> None:
        self._mode = mode
        self._root = root
        self._remove = remove
        self._free: list[Path] = []
        self._made = 0

    def prepare(self) -> None:
        """Begins with an empty root; removes what an older agent left."""
        if self._root.exists():
            old = self._root.with_name(f"{self._root.name}.old")
            number = 0
            while old.exists():
                number += 1
                old = self._root.with_name(f"{self._root.name}.old{number}")
            self._root.rename(old)
        self._root.mkdir(mode=self._mode)
        self._root.chmod(self._mode)
        for old in self._root.parent.glob(f"{self._root.name}.old*"):
            self._remove(old)

    def take(self) -> Path:
        """Returns a folder that is empty or does not exist yet."""
        if self._free:
            return self._free.pop()
        self._made += 1
        return self._root / str(self._made)

    def give_back(self, path: Path, dirty: bool) -> None:
        """Keeps the folder of an ended attempt for the next one, or removes it."""
        if dirty:
            self._remove(path)
        else:
            self._free.append(path)

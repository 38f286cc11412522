"""Folders for attempts: made when first needed, used again when they were left empty.

Making and removing a folder costs more than starting a small program, so an attempt that
leaves nothing behind costs neither.
"""

from pathlib import Path

from windlass.worker.keeper.client import KeeperClient


class Scratch:
    """The folders below one root; the keeper makes and removes them."""

    def __init__(self, root: Path, keeper: KeeperClient) -> None:
        self._root = root
        self._keeper = keeper
        self._free: list[Path] = []
        self._made = 0

    def prepare(self) -> None:
        """Begin with an empty root; what an older agent left is removed on the way."""
        if self._root.exists():
            old = self._root.with_name(f"{self._root.name}.old")
            number = 0
            while old.exists():
                number += 1
                old = self._root.with_name(f"{self._root.name}.old{number}")
            self._root.rename(old)
        self._root.mkdir(mode=0o700)
        for old in self._root.parent.glob(f"{self._root.name}.old*"):
            self._keeper.remove(old)

    def take(self) -> Path:
        """A folder that is empty, or not there yet."""
        if self._free:
            return self._free.pop()
        self._made += 1
        return self._root / str(self._made)

    def give_back(self, path: Path, dirty: bool) -> None:
        """An attempt has ended: its folder is used again, or removed."""
        if dirty:
            self._keeper.remove(path)
        else:
            self._free.append(path)

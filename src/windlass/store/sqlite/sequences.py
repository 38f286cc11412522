"""Rising numbers that are never given twice, kept in memory and saved with each commit."""

from collections.abc import Iterable


class Sequences:
    """The last number given of each sequence; every one begins at 1."""

    def __init__(self, saved: Iterable[tuple[str, int]] = ()) -> None:
        self._saved = dict(saved)
        self._given: dict[str, int] = {}

    def take(self, name: str, count: int = 1) -> range:
        """Returns the next `count` numbers."""
        last = self._given.get(name)
        if last is None:
            last = self._saved.get(name, 0)
        self._given[name] = last + count
        return range(last + 1, last + count + 1)

    def unsaved(self) -> list[tuple[str, int]]:
        """Returns what the transaction in force must write."""
        return list(self._given.items())

    def reload(self, saved: Iterable[tuple[str, int]]) -> None:
        """Reads the numbers again after another process has given some."""
        self._saved = dict(saved)

    def committed(self) -> None:
        self._saved.update(self._given)
        self._given.clear()

    def rolled_back(self) -> None:
        """Takes back the numbers given since the last commit."""
        self._given.clear()

"""Rising numbers that are never given twice, kept in memory and saved with each commit."""

from collections.abc import Iterable
from typing import Final

from windlass.domain.rows.gaps import SHAPE_MARGIN, first_after

SHAPE: Final = "shape"
OTHERS: Final = ""  # stands for sequences that have given nothing yet


class Sequences:
    """The last number given of each sequence; every one begins at 1."""

    def __init__(self, saved: Iterable[tuple[str, int]] = ()) -> None:
        self._saved = dict(saved)
        self._given: dict[str, int] = {}

    def take(self, name: str, count: int = 1) -> range:
        """Returns the next `count` numbers."""
        last = self._last(name)
        self._given[name] = last + count
        return range(last + 1, last + count + 1)

    def give_back(self, name: str) -> None:
        """Takes back the number that was given last."""
        self._given[name] -= 1

    def jump(self, newest: int, now_ms: int) -> int:
        """Lets all sequences go on after the number it returns, which is above `newest`."""
        names = {OTHERS, *self._saved, *self._given} - {SHAPE}
        first = first_after(max(newest, *map(self._last, names)), now_ms)
        self._given.update(dict.fromkeys(names, first))
        self._given[SHAPE] = self._last(SHAPE) + SHAPE_MARGIN
        return first

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

    def _last(self, name: str) -> int:
        last = self._given.get(name)
        if last is None:
            last = self._saved.get(name)
        if last is not None:
            return last
        return 0 if name in (SHAPE, OTHERS) else self._last(OTHERS)

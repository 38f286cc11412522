"""Pauses between tries: each longer than the one before, and spread by chance."""

from windlass.ports.clock import Chance


class Backoff:
    """Doubles the pause from `first_ms` up to `longest_ms`."""

    def __init__(self, chance: Chance, first_ms: int, longest_ms: int) -> None:
        self.failures = 0
        self._chance = chance
        self._first_ms = first_ms
        self._longest_ms = longest_ms

    def reset(self) -> None:
        """Begins with the shortest pause again."""
        self.failures = 0

    def next_ms(self) -> int:
        """Returns the pause before the next try."""
        pause = min(self._first_ms * 2 ** min(self.failures, 10), self._longest_ms)
        self.failures += 1
        return self.spread(pause)

    def spread(self, pause_ms: float) -> int:
        """Returns half to all of a pause, so that agents do not return all at once."""
        return int(pause_ms * (0.5 + self._chance.fraction() / 2))

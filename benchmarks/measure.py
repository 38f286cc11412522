"""Time things on a noisy machine: many short rounds, interleaved, compared pair by pair.

Each round runs every contender once, one after the other, so that a slow moment hits all of
them alike. A figure is the best of its rounds; a ratio is the median of the rounds' ratios.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import msgspec


class Lap(NamedTuple):
    """One run: how many jobs, in how many seconds by the clock and of this process."""

    jobs: int
    seconds: float
    cpu_seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds

    @property
    def cpu_us(self) -> float:
        return self.cpu_seconds / self.jobs * 1e6


class Watch:
    """A stopwatch over wall and CPU time."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def lap(self, jobs: int) -> Lap:
        return Lap(jobs, time.perf_counter() - self._wall, time.process_time() - self._cpu)


class Laps(msgspec.Struct, frozen=True):
    """All rounds of one contender."""

    laps: Sequence[Lap]

    @property
    def rate(self) -> float:
        """Jobs per second in the best round."""
        return max(lap.rate for lap in self.laps)

    @property
    def rates(self) -> list[float]:
        return [round(lap.rate) for lap in self.laps]

    @property
    def cpu_us(self) -> float:
        """Microseconds of CPU a job, in the median round."""
        return median(lap.cpu_us for lap in self.laps)

    def ratio(self, other: "Laps") -> float:
        """The median of the rounds' ratios to `other`."""
        pairs = zip(self.laps, other.laps, strict=True)
        return median(mine.rate / its.rate for mine, its in pairs)


def interleave(
    rounds: int, contenders: Mapping[str, Callable[[], Lap]], warm_up: bool = True
) -> dict[str, Laps]:
    """Run all contenders `rounds` times in turn, and once more before that to warm up."""
    laps: dict[str, list[Lap]] = {name: [] for name in contenders}
    for number in range(0 if warm_up else 1, rounds + 1):
        for name, run in contenders.items():
            lap = run()
            if number:
                laps[name].append(lap)
    return {name: Laps(found) for name, found in laps.items()}

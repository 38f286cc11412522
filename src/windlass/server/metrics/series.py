"""Counters and histograms that cost little to add to, and label values within bounds."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family

from windlass.server.metrics.catalogue import BY_NAME, OTHER, Metric

Labels = tuple[str, ...]

LONG_BUCKETS: Final = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400)
SHORT_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)


class Count:
    """A counter with labels."""

    def __init__(self, name: str, *known: Labels) -> None:
        """Series of `known` labels exist from the start."""
        self._about = BY_NAME[name]
        self.values: dict[Labels, float] = dict.fromkeys(known or _bare(self._about.labels), 0)

    def add(self, labels: Labels = (), by: float = 1) -> None:
        """Adds to one series."""
        self.values[labels] = self.values.get(labels, 0) + by

    def family(self) -> Family:
        """Returns all series."""
        about = self._about
        family = CounterMetricFamily(about.name, about.text, labels=about.labels)
        for labels, value in self.values.items():
            family.add_metric(labels, value)
        return family


class Histogram:
    """A histogram with labels."""

    def __init__(self, name: str, bounds: Sequence[float]) -> None:
        self._about = BY_NAME[name]
        self._bounds = bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, labels: Labels, value: float) -> None:
        """Counts one value."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
            self._sums[labels] = 0.0
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def family(self) -> Family:
        """Returns all series."""
        about = self._about
        family = HistogramMetricFamily(about.name, about.text, labels=about.labels)
        for labels, counts in self._counts.items():
            family.add_metric(labels, list(self._cumulative(counts)), self._sums[labels])
        return family

    def _cumulative(self, counts: Sequence[int]) -> Iterator[tuple[str, float]]:
        total = 0
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        for name, count in zip(names, counts, strict=True):
            total += count
            yield name, total


def gauge(name: str, values: Mapping[Any, float]) -> Family:
    """Returns a gauge of the catalogue with these series, by the values of their labels."""
    return gauge_of(BY_NAME[name], values)


def gauge_of(about: Metric, values: Mapping[Any, float]) -> Family:
    """Returns a gauge with these series, by the values of their labels."""
    family = GaugeMetricFamily(about.name, about.text, labels=about.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


class ShownNames:
    """Which names gauges show: the largest, and only so many in the whole life of a server.

    Each scrape has at most `most` of them, and all scrapes together at most `ever`: series that
    come and go stay in Prometheus as well.
    """

    def __init__(self, most: int, ever: int) -> None:
        self._most = most
        self._known = BoundedNames(ever)

    def top(self, values: Mapping[str, float]) -> dict[Labels, float]:
        """Returns the largest of the values by name, without the rest."""
        ranked = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
        kept: dict[Labels, float] = {}
        for name, value in ranked:
            if len(kept) == self._most:
                break
            if self._known.admit((name,), ()):
                kept[name,] = value
        return kept

    def largest(self, values: Mapping[str, float]) -> dict[Labels, float]:
        """Returns the largest of the values by name, and the sum of the rest as `other`."""
        kept = self.top(values)
        if len(values) > len(kept):
            rest = sum(values.values()) - sum(kept.values())
            kept[OTHER,] = kept.get((OTHER,), 0) + rest  # one of them may have that name itself
        return kept


class BoundedNames:
    """The first so many names; `other` stands for those that come later."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[Labels] = set()

    def admit(self, labels: Labels, instead: Labels) -> Labels:
        """Returns the labels themselves, or `instead` if there are too many others."""
        if labels in self._known:
            return labels
        if len(self._known) >= self._most:
            return instead
        self._known.add(labels)
        return labels


def _bare(labels: Iterable[str]) -> tuple[Labels, ...]:
    return () if tuple(labels) else ((),)

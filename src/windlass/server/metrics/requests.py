"""Counts requests and how long they took, by route; called for every request."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import Metric as Family

from windlass.server.metrics.series import SHORT_BUCKETS, Count, Histogram, Labels

NO_ROUTE: Final = ("none", "none")  # what anybody may ask for must not become a label


class Requests:
    """The requests that a server answered."""

    def __init__(self) -> None:
        self._count = Count("windlass_http_requests_total")
        self._times = Histogram("windlass_http_request_seconds", SHORT_BUCKETS)

    def note(self, route: Labels, status: int, seconds: float) -> None:
        """Counts an answer to a route, given as its path and method."""
        self._count.add((*route, str(status)))
        self._times.observe(route, seconds)

    def families(self) -> Iterator[Family]:
        """Returns everything that was counted."""
        yield self._count.family()
        yield self._times.family()

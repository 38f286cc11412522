"""What `/metrics` shows: one catalogue of metrics, and where each value comes from.

The catalogue also writes docs/reference/metrics.md. Nothing here decides anything about jobs, and
nothing runs in the transactions that move them.
"""

from windlass.server.metrics.meters import Meters

__all__ = ["Meters"]

"""What is leased according to the log: by worker and shape, by queue, and under rates."""

from collections import Counter
from typing import Any


class QueuePast:
    """One queue after the events so far; 0 means no limit."""

    __slots__ = ("active", "max_per_worker", "max_running")

    def __init__(self) -> None:
        self.active = 0
        self.max_running = self.max_per_worker = 0


class Holdings:
    """Leases by worker and shape and by queue, and starts under rates."""

    def __init__(self) -> None:
        self.queues: dict[str, QueuePast] = {}
        self.starts: dict[tuple[str, str], list[int]] = {}
        self._held: dict[int, Counter[int]] = {}

    def queue(self, name: str) -> QueuePast:
        return self.queues.setdefault(name, QueuePast())

    def held(self, worker: int) -> Counter[int]:
        """Returns the shapes of the jobs that a worker holds."""
        return self._held.setdefault(worker, Counter())

    def take(self, worker: int, shape: int, queue: str, jobs: int) -> None:
        """Adds leases to a worker, or removes them."""
        self.held(worker)[shape] += jobs
        self.queue(queue).active += jobs

    def set_limits(self, data: dict[str, Any]) -> None:
        """Sets new limits of a queue."""
        queue = self.queue(data["queue"])
        queue.max_running = data["max_running"]
        queue.max_per_worker = data["max_per_worker"]

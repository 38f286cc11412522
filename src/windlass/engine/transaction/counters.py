"""The engine's own counters, as an operator reads them."""

import msgspec


class LoopRounds(msgspec.Struct, frozen=True):
    """The rounds of one loop in this process: how long the last took, how many failed."""

    interval_ms: int
    took_ms: int
    failures: int


class Metrics(msgspec.Struct, kw_only=True):
    """Counts since this engine started; `queue_depth` is the store's, per queue.

    `assignment_attempts` counts slots for which jobs were requested, also by idle workers;
    successes are assigned jobs, failures the ones that came back before they ran.
    `worker_failure_rate` is the share of failed assignments that workers caused. `last_run_ms` says
    when each loop last ran, in the store's time. `wanted` is how many workers each pool needs, if
    this engine sizes the pools.
    """

    queue_depth: dict[str, int] = {}
    assignment_attempts: int = 0
    assignment_successes: int = 0
    assignment_failures: int = 0
    retries: int = 0
    timeouts: int = 0
    orphans: int = 0
    worker_failures: int = 0
    worker_failure_rate: float = 0.0
    last_run_ms: dict[str, int] = {}
    loops: dict[str, LoopRounds] = {}
    wanted: dict[str, int] = {}


class Counters:
    """Adds up the effects of commits."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._last_run: dict[str, int] = {}
        self._loops: dict[str, LoopRounds] = {}
        self.wanted: dict[str, int] = {}  # by pool; set by the loop that sizes them

    def add(self, counts: dict[str, int]) -> None:
        """Counts what a commit did."""
        for name, by in counts.items():
            self._counts[name] = self._counts.get(name, 0) + by

    def ran(self, loop: str, now: int) -> None:
        """Records that a loop has run."""
        self._last_run[loop] = now

    def end_round(self, loop: str, interval_ms: int, took_ms: int, failed: bool) -> None:
        """Records how a round of a loop went."""
        known = self._loops.get(loop)
        failures = (known.failures if known else 0) + failed
        self._loops[loop] = LoopRounds(interval_ms, took_ms, failures)

    def read(self, depth: dict[str, int]) -> Metrics:
        """Returns the metrics, together with the store's queue depths."""
        counts = self._counts
        attempts = counts.get("assignment_attempts", 0)
        successes = counts.get("assignment_successes", 0)
        failures = counts.get("worker_failures", 0)
        return Metrics(
            queue_depth=depth,
            assignment_attempts=attempts,
            assignment_successes=successes,
            assignment_failures=counts.get("assignment_failures", 0),
            retries=counts.get("retries", 0),
            timeouts=counts.get("timeouts", 0),
            orphans=counts.get("orphans", 0),
            worker_failures=failures,
            worker_failure_rate=failures / successes if successes else 0.0,
            last_run_ms=dict(self._last_run),
            loops=dict(self._loops),
            wanted=dict(self.wanted),
        )

"""What all parts of one simulated run share: virtual time, randomness and findings."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from contextvars import Context
from typing import Any

from windlass.domain.config import Config
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.domain.lifecycle.timeouts import TimeoutPolicy
from windlass.domain.values.errors import WindlassError
from windlass.engine.verify import Violation
from windlass.ports.loop_time import pass_time
from windlass.simulator.virtual_loop import VirtualLoop
from windlass.worker.core.sync_loop import IncarnationEnded

START_MS = 1_700_000_000_000  # an arbitrary time; nothing may depend on it


class VirtualClock:
    """The simulation's time, in milliseconds since 1970."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return START_MS + round(self._loop.time() * 1000)

    async def sleep_ms(self, duration_ms: int) -> None:
        await pass_time(duration_ms / 1000)


class SeededChance:
    """Jitter from the run's generator."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def fraction(self) -> float:
        return self._chance.random()


# The defaults in proportion, on a smaller scale, so that there is less time to simulate.
CONFIG = Config(
    heartbeat_interval_ms=5_000,
    heartbeat_timeout_ms=25_000,
    term_grace_ms=2_000,
    scheduling_interval_ms=2_500,
    health_interval_ms=3_000,
    cleanup_interval_ms=7_000,
    heard_gap_ms=10_000,
    retry=RetryPolicy(initial_backoff_ms=1_000, max_backoff_ms=20_000, jitter=0.3),
    timeouts=TimeoutPolicy(default_ms=30_000, assigned_ms=15_000, idle_ms=20_000),
    returned_exclusion_ms=15_000,
    bad_worker_window_ms=60_000,
)

# How tasks of the production code may end; any other error is a finding.
EXPECTED = (WindlassError, IncarnationEnded)


class World:
    """One run's loop, clock, generator, faults and findings."""

    def __init__(self, seed: int, config: Config = CONFIG) -> None:
        self.config = config
        # Repeatable on purpose: nothing in a simulation is secret.
        self.chance = random.Random(seed)  # nosec B311
        self.faults: Counter[str] = Counter()
        self.violations: list[Violation] = []
        self.calm = False  # faults have stopped
        self.loop = VirtualLoop(self._task_ended)
        self.loop.set_exception_handler(self._unhandled)
        self.clock = VirtualClock(self.loop)
        self._nobody = Context()

    def fault(self, name: str, rate: float) -> bool:
        """Returns True if a fault of this kind happens now; `rate` is its probability."""
        if self.calm or not rate or self.chance.random() >= rate:
            return False
        self.faults[name] += 1
        return True

    def between(self, low_ms: int, high_ms: int) -> int:
        """Returns a random duration."""
        return self.chance.randint(low_ms, high_ms)

    def after(
        self, delay_ms: float, call: Callable[..., None], *args: object
    ) -> asyncio.TimerHandle:
        """Calls something later that belongs to no process, so that a stopped one does not delay
        it.
        """
        return self.loop.call_later(delay_ms / 1000, call, *args, context=self._nobody)

    def spawn(self, work: Any) -> "asyncio.Task[Any]":
        """Runs a coroutine beside the others."""
        return self.loop.create_task(work)

    def found(self, invariant: str, message: str, job: int = 0) -> None:
        """Records a violation."""
        self.violations.append(Violation(invariant, message, job))

    def _task_ended(self, task: "asyncio.Task[Any]") -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, EXPECTED):
            self.found("crash", f"{type(error).__name__}: {error}")

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        del loop
        self.found("crash", f"{context.get('message')}: {context.get('exception')!r}")

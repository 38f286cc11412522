"""The real clock and real chance: the only place that reads them.

Time is the wall clock at start carried on by a clock that never steps and counts while
the machine sleeps, so a corrected wall clock expires nothing.
"""

import asyncio
import random
import secrets
import time

# Seconds of processor time that the calling thread has used: others on the machine do not count.
thread_seconds = time.thread_time

# Seconds of a clock that never steps, which takes no system call.
wall_seconds = time.perf_counter


class RealClock:
    """Milliseconds since 1970 (UTC)."""

    def __init__(self) -> None:
        self._start_ms = time.time() * 1000
        self._boot = time.clock_gettime(time.CLOCK_BOOTTIME)

    def now_ms(self) -> int:
        elapsed = time.clock_gettime(time.CLOCK_BOOTTIME) - self._boot
        return int(self._start_ms + elapsed * 1000)

    async def sleep_ms(self, duration_ms: int) -> None:
        await asyncio.sleep(duration_ms / 1000)


class RealChance:
    """Randomness for jitter; nothing secret depends on it."""

    def fraction(self) -> float:
        # It spreads retries over time; secrets come from `RealSecrets`.
        return random.random()  # nosec B311


class RealSecrets:
    """Secrets from the operating system."""

    def secret(self) -> str:
        return secrets.token_urlsafe(32)

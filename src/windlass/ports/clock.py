"""The ports for time and randomness.

Nothing outside `windlass/clock.py` reads a real clock, sleeps or draws random numbers,
so the whole system runs under the simulator's virtual time and one seed.
"""

from typing import Protocol


class Clock(Protocol):
    """Milliseconds since 1970 (UTC) that never run backwards, and waiting."""

    def now_ms(self) -> int:
        """Returns the current time."""

    async def sleep_ms(self, duration_ms: int) -> None:
        """Returns after `duration_ms` have passed."""


class Chance(Protocol):
    """A source of randomness, for jitter only."""

    def fraction(self) -> float:
        """Returns a number in [0, 1)."""


class Secrets(Protocol):
    """A source of secrets."""

    def secret(self) -> str:
        """Returns 256 bits from the operating system, as text for a header or a URL."""

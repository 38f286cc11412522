"""Hold on to a commit while working on it, and stop working when it was lost."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar

from windlass.domain.values.errors import Conflict, WindlassError
from windlass.fuzzing.leases import Held
from windlass.ports.clock import Clock

T = TypeVar("T")

LEASE_MS: Final = 15 * 60_000


class Renews(Protocol):
    """Steps that can hold on to a commit."""

    async def renew(self, held: Held, length_ms: int) -> Held: ...


async def while_held(
    steps: Renews,
    held: Held,
    length_ms: int,
    clock: Clock,
    work: Coroutine[Any, Any, T],
) -> T:
    """Do `work`, renewing the lease; raises `Conflict` if somebody else has got the commit.

    A renewal that fails for another reason (the bucket does not answer) is tried again: the
    lease is long enough for some of them to fail.
    """
    doing = asyncio.ensure_future(work)
    renewing = asyncio.ensure_future(_renew(steps, held, length_ms, clock.sleep_ms))
    both: set[asyncio.Future[Any]] = {doing, renewing}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise renewing.exception() or Conflict("lease_lost", f"{held.commit} was lost")
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)


async def _renew(
    steps: Renews, held: Held, length_ms: int, sleep_ms: Callable[[int], Awaitable[None]]
) -> None:
    """Until it is lost; three renewals in the life of a lease."""
    while True:
        await sleep_ms(length_ms // 3)
        try:
            held = await steps.renew(held, length_ms)
        except Conflict as lost:
            if lost.code == "lease_lost":
                raise
        except WindlassError:
            continue

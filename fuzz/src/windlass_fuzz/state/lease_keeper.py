"""Renews a lease while the work on its commit runs, and cancels the work if it is lost."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar

from windlass.domain.values.errors import Conflict, WindlassError
from windlass.ports.clock import Clock
from windlass_fuzz.state.leases import HeldLease

T = TypeVar("T")

LEASE_MS: Final = 15 * 60_000


class LeaseRenewer(Protocol):
    """Steps that can renew a lease."""

    async def renew(self, held: HeldLease, length_ms: int) -> HeldLease: ...


async def while_held(
    steps: LeaseRenewer,
    held: HeldLease,
    length_ms: int,
    clock: Clock,
    work: Coroutine[Any, Any, T],
) -> T:
    """Runs `work` while renewing the lease; raises `Conflict` if someone else took the commit.

    A renewal that fails for another reason (the bucket does not answer) is retried: the lease
    is long enough for some renewals to fail.
    """
    working = asyncio.ensure_future(work)
    renewing = asyncio.ensure_future(_renew(steps, held, length_ms, clock.sleep_ms))
    both: set[asyncio.Future[Any]] = {working, renewing}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise renewing.exception() or Conflict("lease_lost", f"{held.commit} was lost")
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)


async def _renew(
    steps: LeaseRenewer, held: HeldLease, length_ms: int, sleep_ms: Callable[[int], Awaitable[None]]
) -> None:
    """Renews the lease three times per lease length, until it is lost."""
    while True:
        await sleep_ms(length_ms // 3)
        try:
            held = await steps.renew(held, length_ms)
        except Conflict as lost:
            if lost.code == "lease_lost":
                raise
        except WindlassError:
            continue

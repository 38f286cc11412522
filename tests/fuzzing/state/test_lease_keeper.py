"""A lease is renewed while the work runs, and the work stops if the lease is lost."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.support.running import run
from windlass.clock import RealClock
from windlass.domain.values.errors import Conflict, Unreachable
from windlass_fuzz.state.lease_keeper import while_held
from windlass_fuzz.state.leases import HeldLease

HELD = HeldLease("c" * 40, "token", 0, 1)
LENGTH_MS = 30


class Steps:
    """Renewals with these outcomes, one after another; then all succeed."""

    def __init__(self, *outcomes: Exception) -> None:
        self._outcomes = list(outcomes)
        self.renewed = 0
        self.enough = asyncio.Event()

    async def renew(self, held: HeldLease, length_ms: int) -> HeldLease:
        if self._outcomes:
            raise self._outcomes.pop(0)
        self.renewed += 1
        if self.renewed == 3:
            self.enough.set()
        return held


async def hold(steps: Steps, work: Callable[[], Awaitable[str]]) -> str:
    async def working() -> str:
        return await work()

    return await while_held(steps, HELD, LENGTH_MS, RealClock(), working())


def test_a_lease_is_renewed_until_the_work_is_done() -> None:
    async def main() -> tuple[str, int]:
        steps = Steps()

        async def work() -> str:
            await steps.enough.wait()
            return "done"

        return await hold(steps, work), steps.renewed

    assert run(main()) == ("done", 3)


def test_a_bucket_that_does_not_answer_for_once_costs_nothing() -> None:
    async def main() -> str:
        steps = Steps(Unreachable("no answer"), Conflict("contended", "others were faster"))

        async def work() -> str:
            await steps.enough.wait()
            return "done"

        return await hold(steps, work)

    assert run(main()) == "done"


def test_work_on_a_lost_commit_is_stopped() -> None:
    stopped = []

    async def main() -> None:
        async def work() -> str:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.append(True)
            return "never"

        await hold(Steps(Conflict("lease_lost", "another worker has it")), work)

    with pytest.raises(Conflict, match="another worker"):
        run(main())
    assert stopped == [True]


def test_what_the_work_raises_is_raised() -> None:
    async def main() -> None:
        async def work() -> str:
            raise ValueError("bad")

        await hold(Steps(), work)

    with pytest.raises(ValueError, match="bad"):
        run(main())

"""Group commit: callers share transactions, and none suffers for another."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import pytest

from tests.engine.support.rig import Rig, Turn
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    Overloaded,
    StoreUnavailable,
)
from windlass.store.sql.transaction import WriteTx
from windlass.store.store import Store

T = TypeVar("T")


class Counting:
    """The store, counting its transactions; it fails those it is told to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.transactions = 0
        self.failing: list[Exception] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def transact(self, work: Callable[[WriteTx], Awaitable[T]], rows: int = 0) -> T:
        self.transactions += 1
        if self.failing:
            raise self.failing.pop()
        return await self._store.transact(work, rows)


async def count_transactions(rig: Rig) -> Counting:
    """Restart the engine over a counting store, without the fast path, which does not count."""
    made: list[Counting] = []

    def wrap(store: Store) -> Store:
        made.append(Counting(store))
        return cast("Store", made[0])

    await rig.restart_over(wrap)
    await rig.engine.settled()
    made[0].transactions = 0
    return made[0]


async def gather(*calls: Awaitable[T]) -> list[T | BaseException]:
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_concurrent_submits_share_transactions(rig: Rig) -> None:
    counting = await count_transactions(rig)
    ids = await asyncio.gather(*[rig.submit(args=n) for n in range(200)])
    assert len(set(ids)) == 200
    assert counting.transactions <= 10


async def test_one_caller_alone_does_not_wait_for_company(rig: Rig) -> None:
    counting = await count_transactions(rig)
    await rig.submit()
    assert counting.transactions == 1


async def test_concurrent_syncs_share_transactions(rig: Rig) -> None:
    counting = await count_transactions(rig)
    agents = [await rig.agent(f"w{n}") for n in range(30)]
    await rig.submit_all(*[{"args": n} for n in range(30)])
    counting.transactions = 0
    taken = await asyncio.gather(*[agent.take() for agent in agents])
    assert len({job.job for jobs in taken for job in jobs}) == 30
    assert counting.transactions <= 10


async def test_one_bad_submission_does_not_harm_the_others(rig: Rig) -> None:
    first = await rig.submit(key="k", args=1)
    good = [rig.submit(args=n) for n in range(5)]
    bad = rig.submit(key="k", args=2)
    unknown = rig.submit(after=(999,))
    same = rig.submit(key="k", args=1)
    answers = await gather(*good[:3], bad, unknown, same, *good[3:])
    assert isinstance(answers[3], Conflict)
    assert isinstance(answers[4], InvalidInput)
    assert answers[5] == first
    assert len((await rig.snapshot()).jobs) == 6


async def test_one_bad_command_does_not_harm_the_syncs_beside_it(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    taken, lost = await gather(agent.take(), rig.engine.jobs.retry(999))
    assert not isinstance(taken, BaseException)
    assert isinstance(lost, NotFound)
    assert await rig.state(job) == "running"


async def test_the_same_key_submitted_at_once_is_one_job(rig: Rig) -> None:
    ids = await asyncio.gather(*[rig.submit(key="k") for _ in range(20)])
    assert len(set(ids)) == 1
    assert len((await rig.snapshot()).jobs) == 1


async def test_two_syncs_of_one_worker_never_share_a_transaction(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.submit_all({"args": 1}, {"args": 2})
    requests = [agent.request(want=1), agent.request(want=1)]
    replies = await asyncio.gather(*[rig.engine.sync(agent.id, r) for r in requests])
    # Whichever comes second finds the other's job not received yet, or is too old.
    assert len({job.job for reply in replies for job in reply.jobs}) == 1
    assert len((await rig.snapshot()).leases) == 1


async def test_a_full_queue_refuses_for_now(rig: Rig) -> None:
    await rig.restart(Config(queue_limit=3))
    answers = await gather(*[rig.submit(args=n) for n in range(10)])
    refused = [a for a in answers if isinstance(a, Overloaded)]
    assert len(refused) == 7
    assert refused[0].retry_after_ms == 1_000
    assert len((await rig.snapshot()).jobs) == 3
    await rig.submit()


async def test_a_batch_is_bounded_by_requests_and_bytes(rig: Rig) -> None:
    await rig.restart(Config(batch_requests=10, batch_bytes=100_000))
    counting = await count_transactions(rig)
    await asyncio.gather(*[rig.submit(args=n) for n in range(40)])
    assert counting.transactions >= 4
    counting.transactions = 0
    await asyncio.gather(*[rig.submit(args="x" * 60_000) for _ in range(8)])
    assert counting.transactions >= 4


async def test_an_unavailable_store_answers_all_and_the_next_call_works(rig: Rig) -> None:
    counting = await count_transactions(rig)
    counting.failing = [StoreUnavailable("gone", outcome_unknown=False)] * 4
    answers = await gather(*[rig.submit(args=n) for n in range(3)])
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    counting.failing = []
    job = await rig.submit()
    assert [j.job for j in await (await rig.agent()).take(5)] == [job]


async def test_a_caller_that_goes_away_does_not_take_its_job_along(rig: Rig) -> None:
    going = asyncio.ensure_future(rig.submit(args="going"))
    staying = asyncio.ensure_future(rig.submit(args="staying"))
    await asyncio.wait([staying])
    going.cancel()
    await gather(going)
    assert len((await rig.snapshot()).jobs) == 2


async def test_the_first_caller_goes_away_and_the_others_are_answered(rig: Rig) -> None:
    """It commits for all of them, unless it is cancelled before."""
    going = asyncio.ensure_future(rig.submit(args="going"))
    staying = [asyncio.ensure_future(rig.submit(args=n)) for n in range(3)]
    await Turn()
    going.cancel()
    ids = await asyncio.wait_for(asyncio.gather(*staying), 60)
    assert len(set(ids)) == 3
    await rig.submit()


@pytest.mark.parametrize("count", [1, 5])
async def test_a_submission_of_many_shapes_rolled_back_leaves_no_wrong_cache(
    rig: Rig, count: int
) -> None:
    agent = await rig.agent(metadata={"tasks_allowlist": ["b"]})
    specs = [JobSpec(task=f"a{n}", name=f"n{n}") for n in range(count)]
    answers = await gather(
        rig.engine.submit([*specs, JobSpec(task="a", after=(999,))]),
        agent.take(),
        rig.submit("b"),
    )
    assert isinstance(answers[0], InvalidInput)
    assert len(await agent.take(1) or answers[1]) == 1  # type: ignore[arg-type]

"""Many transactions on overlapping rows in any order: they take turns and never deadlock.

A deadlock would show as a transaction that ran a second time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import cycle, islice

import pytest

from tests.store.conformance.rows import new_job, ticket, wait, worker, workflow
from tests.store.postgres.conftest import OpenStore
from tests.support.running import run
from windlass.domain.rows.records import JobTry
from windlass.domain.values.ids import AttemptNo, JobId
from windlass.store.sql.transaction import ReadTx, WriteTx

ROWS = 40
TRANSACTIONS = 60


async def fill(tx: WriteTx) -> None:
    ids = range(1, ROWS + 1)
    await tx.jobs.insert([new_job(job) for job in ids])
    await tx.places.add_waits([wait(job, unmet=1_000) for job in ids])
    await tx.places.add_ready([ticket(job) for job in ids])
    await tx.workflows.insert([workflow(number) for number in ids])
    for number in ids:
        await tx.workers.insert(worker(name=f"w{number}"))


async def try_jobs(tx: WriteTx, ids: Sequence[int]) -> None:
    await tx.jobs.lock(ids)
    await tx.jobs.note_tries([JobTry(JobId(job), AttemptNo(1), 0, 0, 0, 7, None) for job in ids])


async def meet(tx: WriteTx, ids: Sequence[int]) -> None:
    await tx.places.meet(dict.fromkeys(ids, 1))


async def bump(tx: WriteTx, ids: Sequence[int]) -> None:
    await tx.workflows.bump({number: {2: 1} for number in ids})


async def set_states(tx: WriteTx, ids: Sequence[int]) -> None:
    await tx.workflows.set_state([(number, 2, 1, 0) for number in ids])


async def beat(tx: WriteTx, ids: Sequence[int]) -> None:
    await tx.workers.beat([(number, 1, 1, 1) for number in ids])


async def update(tx: WriteTx, ids: Sequence[int]) -> None:
    found = await tx.workers.all()
    await tx.workers.update([row for number in ids for row in found if row.id == number])


async def append_edges(tx: WriteTx, ids: Sequence[int]) -> None:
    await tx.jobs.share(ids)
    await tx.jobs.add_dependents({job: [2, 4, 6] for job in ids})


async def intern_limits(tx: WriteTx, ids: Sequence[int]) -> None:
    await tx.limits.intern([("team", f"key{number}", 1) for number in ids])


async def count(tx: WriteTx, ids: Sequence[int]) -> None:
    await tx.log.bump({f"counter{number}": 1 for number in ids})


def orders() -> list[list[int]]:
    """Overlapping subsets, each walked in an order of its own."""
    ids = list(range(1, ROWS + 1))
    return [
        [ids[(start * 7 + step * stride) % ROWS] for step in range(15)]
        for start, stride in enumerate(islice(cycle((1, 3, 7, 39, 37)), TRANSACTIONS))
    ]


@pytest.mark.parametrize(
    "touch",
    [try_jobs, meet, bump, set_states, beat, update, append_edges, intern_limits, count],
    ids=lambda touch: touch.__name__,
)
def test_overlapping_sets_never_deadlock(
    open_store: OpenStore, touch: Callable[[WriteTx, Sequence[int]], Awaitable[None]]
) -> None:
    async def check() -> None:
        async with open_store("s1", pool_idle=25) as one, open_store("s2") as two:
            await one.transact(fill)
            runs = 0

            async def work(tx: WriteTx, ids: Sequence[int]) -> None:
                nonlocal runs
                runs += 1
                await touch(tx, ids)

            stores = cycle((one, two))
            await asyncio.gather(
                *(next(stores).transact(partial(work, ids=ids)) for ids in orders())
            )
            assert runs == TRANSACTIONS

    run(check())


async def lengths(tx: ReadTx) -> list[int]:
    """How full the first four chunks of job 1 are."""
    return [len((await tx.jobs.dependents([1], chunk)).get(1, ())) for chunk in range(4)]


def test_edges_appended_at_once_are_all_there(open_store: OpenStore) -> None:
    async def check() -> None:
        async with open_store("s1") as one, open_store("s2") as two:
            await one.transact(fill)

            async def append(tx: WriteTx, first: int) -> None:
                await tx.jobs.share([1])
                await tx.jobs.add_dependents({1: range(first, first + 150)})

            stores = cycle((one, two))
            await asyncio.gather(
                *(next(stores).transact(partial(append, first=n * 1_000)) for n in range(1, 21))
            )
            ((job, edges),) = (await one.snapshot()).dependents
            assert job == 1
            assert sorted(edges) == [n * 1_000 + i for n in range(1, 21) for i in range(150)]
            assert await one.read(lengths) == [1_000, 1_000, 1_000, 0]

    run(check())


def test_conditions_met_at_once_free_the_job_once(open_store: OpenStore) -> None:
    async def check() -> None:
        async with open_store("s1") as one, open_store("s2") as two:
            await one.transact(lambda tx: tx.places.add_waits([wait(5, unmet=20)]))
            stores = cycle((one, two))
            freed = await asyncio.gather(
                *(next(stores).transact(lambda tx: tx.places.meet({5: 1})) for _ in range(20))
            )
            assert [row.job for rows in freed for row in rows] == [5]
            assert (await one.snapshot()).waits == ()

    run(check())

"""Concurrency keys: never more at once than allowed, and no slot left empty."""

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.job.forms import Concurrency


def at_most(most: int, key: str = "db") -> Concurrency:
    return Concurrency(key=key, max=most)


async def running(rig: Rig) -> int:
    return len((await rig.snapshot()).leases)


@pytest.mark.parametrize("most", [1, 3])
async def test_a_limit_is_never_exceeded_and_always_used(rig: Rig, most: int) -> None:
    for n in range(7):
        await rig.submit(concurrency=at_most(most), args=n)
    agent = await rig.agent()
    done = 0
    held = list(await agent.take(10))
    while held:
        assert len(held) == min(most, 7 - done)
        await agent.finish(held.pop(0))
        done += 1
        held += await agent.take(10)
    assert done == 7


async def test_parked_jobs_are_still_queued(rig: Rig) -> None:
    jobs = [await rig.submit(concurrency=at_most(1), args=n) for n in range(3)]
    await (await rig.agent()).take_one()
    assert await rig.states(*jobs) == ["running", "queued", "queued"]
    assert len((await rig.snapshot()).parked) == 2


async def test_jobs_beyond_their_limit_do_not_hold_back_others(rig: Rig) -> None:
    for n in range(5):
        await rig.submit(concurrency=at_most(1), priority=5, args=n)
    free = await rig.submit()
    agent = await rig.agent()
    await agent.take_one()
    assert [job.job for job in await agent.take(3)] == [free]


async def test_two_shapes_under_one_key_share_the_limit(rig: Rig) -> None:
    first, second = [await rig.submit(f"t{n}", concurrency=at_most(1)) for n in range(2)]
    agent = await rig.agent()
    (given,) = await agent.take(5)
    assert given.job == first
    await agent.finish(given)
    assert [job.job for job in await agent.take(5)] == [second]


async def test_many_shapes_under_one_key_leave_the_rest_of_the_queue_alone(rig: Rig) -> None:
    for n in range(6):
        await rig.submit(f"t{n}", concurrency=at_most(1), priority=5)
    free = await rig.submit()
    agent = await rig.agent()
    await agent.take_one()
    assert [job.job for job in await agent.take(2)] == [free]


async def test_the_same_key_in_two_namespaces_is_two_limits(rig: Rig) -> None:
    for namespace in ("a", "b"):
        await rig.submit(concurrency=at_most(1), namespace=namespace)
    assert len(await (await rig.agent()).take(2)) == 2


async def test_a_new_maximum_counts_from_then_on(rig: Rig) -> None:
    agent = await rig.agent()
    for n in range(2):
        await rig.submit(concurrency=at_most(1), args=n)
    await rig.submit(concurrency=at_most(3), args=3)
    await rig.scheduling()
    assert len(await agent.take(5)) == 3


async def test_a_canceled_ready_job_gives_its_place_to_a_parked_one(rig: Rig) -> None:
    first, second = [await rig.submit(concurrency=at_most(1), args=n) for n in range(2)]
    await rig.engine.jobs.cancel([first])
    assert [job.job for job in await (await rig.agent()).take(2)] == [second]


@pytest.mark.parametrize(
    ("outcome", "failure"),
    [
        ("completed", None),
        ("failed", "execution"),
        ("failed", "network"),
        ("canceled", None),
        ("timed_out", None),
    ],
)
async def test_every_end_of_an_attempt_frees_the_slot(
    rig: Rig, outcome: str, failure: str | None
) -> None:
    _, second = [await rig.submit(concurrency=at_most(1), args=n) for n in range(2)]
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), outcome, failure=failure)  # type: ignore[arg-type]
    assert [job.job for job in await agent.take(2)] == [second]


async def test_a_job_that_is_told_to_stop_keeps_its_slot(rig: Rig) -> None:
    first, second = [await rig.submit(concurrency=at_most(1), args=n) for n in range(2)]
    agent = await rig.agent()
    given = await agent.take_one()
    await rig.engine.jobs.cancel([first])
    assert await agent.take() == ()
    await agent.finish(given, "canceled")
    assert [job.job for job in await agent.take()] == [second]


async def test_a_job_handed_back_frees_the_slot_for_the_best_one(rig: Rig) -> None:
    first, second = [await rig.submit(concurrency=at_most(1), args=n) for n in range(2)]
    agent = await rig.agent()
    await agent.release(await agent.take_one(prefetch=True))
    assert [job.job for job in await agent.take(2)] == [first]
    assert await rig.state(second) == "queued"


async def test_a_lost_worker_frees_its_slots(rig: Rig) -> None:
    await rig.end_grace()
    _, second = [await rig.submit(concurrency=at_most(1), args=n) for n in range(2)]
    dead = await rig.agent("dead")
    await dead.take_one()
    await rig.pass_time(100 * SECOND)
    assert [job.job for job in await (await rig.agent("alive")).take(2)] == [second]


async def test_due_jobs_respect_the_limit_too(rig: Rig) -> None:
    for n in range(3):
        await rig.submit(concurrency=at_most(1), not_before=rig.now + HOUR, args=n)
    await rig.advance(HOUR)
    assert len(await (await rig.agent()).take(3)) == 1


async def test_released_dependents_respect_the_limit_too(rig: Rig) -> None:
    first = await rig.submit()
    for n in range(3):
        await rig.submit(after=(first,), concurrency=at_most(2), args=n)
    agent = await rig.agent()
    await agent.finish(await agent.take_one())
    assert len(await agent.take(3)) == 2


async def fill(rig: Rig, agents: list[Agent]) -> int:
    return sum([len(await agent.take(4)) for agent in agents])


async def test_several_workers_share_one_limit(rig: Rig) -> None:
    for n in range(10):
        await rig.submit(concurrency=at_most(3), args=n)
    agents = [await rig.agent(f"w{n}") for n in range(3)]
    assert await fill(rig, agents) == 3
    assert await fill(rig, agents) == 0
    await rig.advance(MINUTE)
    assert await running(rig) == 3


async def test_a_parked_job_that_becomes_more_urgent_passes_one_that_stands_ready(rig: Rig) -> None:
    first, second, third = [await rig.submit(concurrency=at_most(1), args=n) for n in range(3)]
    await rig.engine.jobs.adjust_priority(third, 5)
    agent = await rig.agent()
    given = await agent.take_one()
    assert given.job == third
    await agent.finish(given)
    assert await rig.order(agent, 1) == [first]
    assert await rig.state(second) == "queued"


async def test_an_urgent_job_that_comes_later_passes_those_that_stand_ready(rig: Rig) -> None:
    slow = [await rig.submit(concurrency=at_most(2), args=n) for n in range(4)]
    urgent = await rig.submit(concurrency=at_most(2), priority=5)
    later = await rig.submit(concurrency=at_most(2), priority=1)
    agent = await rig.agent()
    assert [job.job for job in await agent.take(3)] == [urgent, later]
    assert await rig.states(*slow) == ["queued"] * 4

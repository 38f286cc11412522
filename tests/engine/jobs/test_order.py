"""Who goes first: queue weight, priority, adjustment, age, then first in, first out."""

import pytest

from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.config import Config
from windlass.domain.job.forms import Concurrency


async def test_first_in_first_out(rig: Rig) -> None:
    jobs = [await rig.submit(args=n) for n in range(4)]
    assert await rig.order(await rig.agent(), 4) == jobs


async def test_named_priorities_go_high_medium_low(rig: Rig) -> None:
    low, medium, high, none = [await rig.submit(priority=p) for p in ("low", "medium", "high", 0)]
    assert await rig.order(await rig.agent(), 4) == [high, medium, none, low]


async def test_queues_go_by_their_weights(rig: Rig) -> None:
    batch, other, default, live = [
        await rig.submit(queue=q) for q in ("batch", "other", "default", "live")
    ]
    assert await rig.order(await rig.agent(), 4) == [live, other, default, batch]


async def test_a_high_priority_outweighs_a_queue(rig: Rig) -> None:
    live = await rig.submit(queue="live")
    batch = await rig.submit(queue="batch", priority=91)
    assert await rig.order(await rig.agent(), 2) == [batch, live]


async def test_five_minutes_of_waiting_are_worth_one_level(rig: Rig) -> None:
    old = await rig.submit(priority=0)
    await rig.advance(5 * MINUTE)
    equal = await rig.submit(priority=1)
    better = await rig.submit(priority=2)
    assert await rig.order(await rig.agent(), 3) == [better, old, equal]


async def test_a_moment_short_of_a_level_does_not_count_as_one(rig: Rig) -> None:
    old = await rig.submit(priority=0)
    await rig.advance(5 * MINUTE - 1)
    newer = await rig.submit(priority=1)
    assert await rig.order(await rig.agent(), 2) == [newer, old]


async def test_aging_can_be_turned_off(rig: Rig) -> None:
    await rig.restart(Config(aging_interval_ms=0))
    old = await rig.submit(priority=0)
    await rig.advance(1_000 * HOUR)
    newer = await rig.submit(priority=1)
    assert await rig.order(await rig.agent(), 2) == [newer, old]


async def test_a_retry_keeps_its_age(rig: Rig) -> None:
    agent = await rig.agent()
    old = await rig.submit(retry_on=("execution",))
    given = await agent.take_one()
    await rig.advance(1)
    newer = await rig.submit()
    await agent.finish(given, "failed", failure="execution")
    await rig.advance(5 * SECOND)
    assert await rig.order(agent, 2) == [old, newer]


async def test_a_planned_job_does_not_arrive_with_the_age_of_its_plan(rig: Rig) -> None:
    planned = await rig.submit(not_before=rig.now + HOUR)
    await rig.advance(HOUR - MINUTE)
    earlier = await rig.submit()
    await rig.advance(MINUTE)
    assert await rig.order(await rig.agent(), 2) == [earlier, planned]


async def test_jobs_of_a_workflow_have_its_age(rig: Rig) -> None:
    group = (await rig.submit_all({"not_before": rig.now + 10 * HOUR}, workflow="w")).workflow
    await rig.advance(MINUTE)
    alone = await rig.submit()
    await rig.advance(MINUTE)
    member = await rig.submit(workflow=group)
    assert await rig.order(await rig.agent(), 2) == [member, alone]


@pytest.mark.parametrize(("adjustment", "first"), [(1, 1), (-1, 0)])
async def test_a_ready_job_moves_with_its_adjustment(rig: Rig, adjustment: int, first: int) -> None:
    jobs = [await rig.submit(args=n) for n in range(2)]
    assert await rig.engine.jobs.adjust_priority(jobs[1], adjustment)
    assert (await rig.engine.jobs.position(jobs[1]))[:2] == (0, adjustment)
    assert await rig.order(await rig.agent(), 2) == [jobs[first], jobs[1 - first]]


async def test_a_running_job_keeps_its_adjustment_for_its_retry(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit()
    given = await agent.take_one()
    await rig.engine.jobs.adjust_priority(job, -1)
    await agent.release(given)
    other = await rig.submit()
    assert await rig.order(agent, 2) == [other, job]


async def test_a_blocked_job_moves_with_its_adjustment(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    left, right = [await rig.submit(after=(first,), args=n) for n in range(2)]
    await rig.engine.jobs.adjust_priority(right, 1)
    await agent.finish(await agent.take_one())
    assert await rig.order(agent, 2) == [right, left]


async def test_a_planned_job_moves_with_its_adjustment(rig: Rig) -> None:
    left, right = [await rig.submit(not_before=rig.now + HOUR, args=n) for n in range(2)]
    await rig.engine.jobs.adjust_priority(right, 1)
    await rig.advance(HOUR)
    assert await rig.order(await rig.agent(), 2) == [right, left]


async def test_a_parked_job_moves_with_its_adjustment(rig: Rig) -> None:
    agent = await rig.agent()
    one = Concurrency(key="db", max=1)
    first, left, right = [await rig.submit(concurrency=one, args=n) for n in range(3)]
    given = await agent.take_one()
    assert given.job == first
    await rig.engine.jobs.adjust_priority(right, 1)
    await agent.finish(given)
    given = await agent.take_one()
    assert given.job == right
    await agent.finish(given)
    assert [job.job for job in await agent.take()] == [left]


async def test_the_order_is_kept_across_shapes(rig: Rig) -> None:
    jobs = [await rig.submit(task=f"task-{n % 13}", args=n) for n in range(40)]
    agent = await rig.agent()
    got = [job.job for _ in range(4) for job in await agent.take(10)]
    assert got == jobs


async def test_an_adjustment_is_logged_with_its_actor(rig: Rig) -> None:
    job = await rig.submit()
    await rig.engine.jobs.adjust_priority(job, 3, actor="ann")
    (event,) = [e for e in await rig.events(job) if e.actor]
    assert (event.reason, event.actor) == ("Adjustment 0 → 3", "ann")


async def test_an_ended_job_cannot_be_adjusted(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit()
    await agent.finish(await agent.take_one())
    with pytest.raises(Exception, match=f"job {job} has ended: it is completed"):
        await rig.engine.jobs.adjust_priority(job, 1)

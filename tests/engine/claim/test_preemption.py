"""Preemption: a job of a higher queue takes the worker of a lower one, where both agreed."""

import asyncio

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import SECOND, Rig
from windlass.domain.matching.shapes import Rate
from windlass.messages.sync import Assignment
from windlass.messages.workers import QueueLimits

FOUR = {"system:cpus": 4}


async def occupied(rig: Rig) -> tuple[Agent, Assignment]:
    """A worker with one slot that runs a preemptible job of a low queue."""
    await rig.engine.queues.set_limits("live", QueueLimits(preempts=True))
    agent = await rig.agent(slots=1, metadata=FOUR)
    await rig.submit(queue="batch", preemptible=True)
    return agent, await agent.take_one()


async def stops(agent: Agent) -> list[tuple[int, str]]:
    return [(stop.job, stop.reason) for stop in (await agent.sync()).cancel]


async def test_a_lower_job_makes_room_and_is_queued_again_without_blame(rig: Rig) -> None:
    agent, low = await occupied(rig)
    urgent = await rig.submit(queue="live")
    report = await rig.scheduling()
    assert report.preempted == 1
    assert await stops(agent) == [(low.job, f"preempted by job {urgent} of queue live")]
    assert await rig.state(low.job) == "running"
    await agent.finish(low, "canceled")
    assert (await rig.moves(low.job))[-2:] == [("running", "retrying"), ("retrying", "queued")]
    facts = (await rig.record(low.job)).facts
    assert (facts.failed, facts.lost, facts.returned) == (0, 0, 0)
    given = await agent.take_one()
    assert given.job == urgent
    await agent.finish(given)
    again = await agent.take_one()
    assert (again.job, again.attempt) == (low.job, 2)


async def test_a_worker_that_waits_is_told_at_once(rig: Rig) -> None:
    agent, low = await occupied(rig)
    call = asyncio.ensure_future(agent.sync(wait_ms=30_000))
    while not len(rig.engine.waiting_syncs):
        await asyncio.wait([call], timeout=0.01)
    await rig.submit(queue="live")
    await rig.scheduling()
    reply = await asyncio.wait_for(call, 20)
    assert [stop.job for stop in reply.cancel] == [low.job]


async def test_a_job_that_ends_in_its_grace_has_ended(rig: Rig) -> None:
    agent, low = await occupied(rig)
    await rig.submit(queue="live")
    await rig.scheduling()
    await agent.finish(low)
    assert await rig.state(low.job) == "completed"


async def test_nobody_is_told_twice_for_one_job(rig: Rig) -> None:
    await rig.engine.queues.set_limits("live", QueueLimits(preempts=True))
    agents = [await rig.agent(name, slots=1) for name in ("a", "b")]
    for agent in agents:
        await rig.submit(queue="batch", preemptible=True)
        await agent.take_one()
    await rig.submit(queue="live")
    assert [(await rig.scheduling()).preempted for _ in range(3)] == [1, 0, 0]


async def test_the_youngest_is_told_and_only_as_much_as_is_needed(rig: Rig) -> None:
    await rig.engine.queues.set_limits("live", QueueLimits(preempts=True))
    agent = await rig.agent(slots=4, metadata=FOUR)
    for n in range(4):
        await rig.submit(queue="batch", preemptible=True, resources={"cpus": 1}, args=n)
    held = await agent.take(4)
    await rig.advance(SECOND)
    await rig.submit(queue="live", resources={"cpus": 1})
    await rig.scheduling()
    assert [job for job, _ in await stops(agent)] == [held[-1].job]


@pytest.mark.parametrize("case", ["not preemptible", "queue does not preempt", "same queue",
                                  "cannot run there", "there is room", "paused"])  # fmt: skip
async def test_nobody_is_told_without_need_and_consent(rig: Rig, case: str) -> None:
    await rig.engine.queues.set_limits(
        "live", QueueLimits(preempts=case != "queue does not preempt")
    )
    agent = await rig.agent(slots=2 if case == "there is room" else 1, metadata=FOUR)
    low = "live" if case == "same queue" else "batch"
    await rig.submit(queue=low, preemptible=case != "not preemptible")
    await agent.take_one()
    needs = ("gpu == true",) if case == "cannot run there" else ()
    await rig.submit(queue="live", requires=needs)
    if case == "paused":
        await rig.engine.queues.pause("live")
    assert (await rig.scheduling()).preempted == 0
    assert await stops(agent) == []


async def test_who_would_only_come_back_at_once_is_left_alone(rig: Rig) -> None:
    agent, low = await occupied(rig)
    await rig.engine.jobs.adjust_priority(low.job, 500)
    await rig.submit(queue="live")
    assert (await rig.scheduling()).preempted == 0
    assert await stops(agent) == []


@pytest.mark.parametrize("kept_back_by", ["rate", "queue"])
async def test_nobody_makes_room_for_a_job_that_could_not_start(
    rig: Rig, kept_back_by: str
) -> None:
    agent, _ = await occupied(rig)
    other = await rig.agent("other", slots=1)
    limit = Rate("api", 1, 600 * SECOND) if kept_back_by == "rate" else None
    if kept_back_by == "queue":
        await rig.engine.queues.set_limits("live", QueueLimits(max_running=1))
    for n in range(2):
        await rig.submit(queue="live", rate=limit, args=n)
    await other.take_one()
    assert (await rig.scheduling()).preempted == 0
    assert await stops(agent) == []

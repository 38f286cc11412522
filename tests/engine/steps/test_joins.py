"""Functions that wait for jobs they have submitted: suspended until all of these have ended."""

import pytest

from tests.engine.steps.test_stored_steps import holder
from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, Rig
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.steps import StepState
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.engine.steps import end_joins
from windlass.engine.verify.check import verify
from windlass.messages.sync import Assignment

PENDING, DONE, TIMED_OUT = StepState


async def add_children(rig: Rig, agent: Agent, parent: Assignment, count: int) -> list[int]:
    specs = [
        JobSpec(task="shell", args={"argv": ["true"]}, labels={"n": str(n)}) for n in range(count)
    ]
    done = await rig.engine.jobs.submit_children(holder(agent, parent), specs, "k")
    return list(done.ids)


async def join(rig: Rig, agent: Agent, parent: Assignment, jobs: list[int]) -> StepState:
    row = await rig.engine.steps.join(holder(agent, parent), "children", jobs, None)
    return StepState(row.state)


async def suspended_parent(rig: Rig, agent: Agent, count: int = 1) -> tuple[Assignment, list[int]]:
    """A job that waits for children, which are queued."""
    await rig.submit()
    parent = await agent.take_one()
    children = await add_children(rig, agent, parent, count)
    assert await join(rig, agent, parent, children) is PENDING
    await agent.finish(parent, "suspended")
    return parent, children


async def test_one_slot_is_enough_for_a_parent_and_its_children(rig: Rig) -> None:
    agent = await rig.agent(slots=1)
    parent, children = await suspended_parent(rig, agent, 2)
    told = (await rig.engine.explain.job(parent.job)).summary
    assert told.startswith(f"suspended: waits for the end of job {children[0]} and 1 other since")
    for child in children:
        assert await rig.state(parent.job) == "suspended"
        taken = await agent.take_one()
        assert taken.job == child
        await agent.finish(taken)
        await rig.engine.background.finish()
    again = await agent.take_one()
    assert (again.job, again.attempt) == (parent.job, 2)
    row = await rig.engine.steps.join(holder(agent, again), "children", children, None)
    assert (row.state, row.value) == (DONE, b"[%d,%d]" % tuple(children))
    await agent.finish(again)
    assert await verify(rig.store) == []


async def test_a_child_that_failed_ends_the_wait_too(rig: Rig) -> None:
    agent = await rig.agent(slots=1)
    parent, _ = await suspended_parent(rig, agent)
    await agent.fail(await agent.take_one(), FailureClass.EXECUTION)
    await rig.engine.background.finish()
    assert await rig.state(parent.job) == "queued"


async def test_a_child_that_was_retried_is_followed_to_its_successor(rig: Rig) -> None:
    agent = await rig.agent(slots=2)
    parent, (one, other) = await suspended_parent(rig, agent, 2)
    await agent.fail(await agent.take_one(), FailureClass.EXECUTION)
    newer = (await rig.engine.jobs.retry(one)).id
    for _ in range(2):
        assert await rig.state(parent.job) == "suspended"
        await agent.finish(await agent.take_one())
        await rig.scheduling()
    again = await agent.take_one()
    row = await rig.engine.steps.join(holder(agent, again), "children", [one, other], None)
    assert (again.job, row.value) == (parent.job, b"[%d,%d]" % (newer, other))


async def test_the_loop_finds_ends_that_nobody_told_of(rig: Rig) -> None:
    agent = await rig.agent(slots=1)
    parent, _ = await suspended_parent(rig, agent)
    rig.engine._joined.clear()  # as after a restart, or on another server
    await agent.finish(await agent.take_one())
    assert await rig.state(parent.job) == "suspended"
    await rig.scheduling()
    assert await rig.state(parent.job) == "queued"


async def test_children_that_end_before_the_attempt_does_are_not_missed(rig: Rig) -> None:
    agent = await rig.agent(slots=2)
    await rig.submit()
    parent = await agent.take_one()
    children = await add_children(rig, agent, parent, 1)
    assert await join(rig, agent, parent, children) is PENDING
    await agent.finish(await agent.take_one())
    await rig.engine.background.finish()
    await agent.finish(parent, "suspended")
    assert (await agent.take_one()).job == parent.job


async def test_a_child_that_has_ended_is_not_waited_for(rig: Rig) -> None:
    agent = await rig.agent(slots=2)
    await rig.submit()
    parent = await agent.take_one()
    children = await add_children(rig, agent, parent, 1)
    await agent.finish(await agent.take_one())
    assert await join(rig, agent, parent, children) is DONE


async def test_the_time_may_be_up_first(rig: Rig) -> None:
    agent = await rig.agent(slots=2)
    await rig.submit()
    parent = await agent.take_one()
    children = await add_children(rig, agent, parent, 1)
    await rig.engine.steps.join(holder(agent, parent), "c", children, MINUTE)
    await agent.finish(parent, "suspended")
    await rig.advance(MINUTE)
    await rig.engine.due_jobs.move()
    again = next(job for job in await agent.take(2) if job.job == parent.job)
    row = await rig.engine.steps.join(holder(agent, again), "c", children, MINUTE)
    assert row.state == TIMED_OUT


async def test_only_own_children_are_waited_for(rig: Rig) -> None:
    agent = await rig.agent(slots=2)
    other = await rig.submit()
    await rig.submit()
    await agent.take_one()
    parent = await agent.take_one()
    for jobs in ([other], [parent.job], [999]):
        with pytest.raises(InvalidInput, match=f"jobs that job {parent.job} has submitted"):
            await join(rig, agent, parent, jobs)
    with pytest.raises(InvalidInput, match="from 1 to"):
        await join(rig, agent, parent, [])
    lost = holder(agent, parent)._replace(attempt=9)
    with pytest.raises(Conflict, match="not held"):
        await rig.engine.steps.join(lost, "k", [other], None)


async def test_a_canceled_parent_leaves_its_children_alone(rig: Rig) -> None:
    agent = await rig.agent(slots=1)
    parent, (child,) = await suspended_parent(rig, agent)
    await rig.engine.jobs.cancel([parent.job], "enough", "ada")
    assert (await rig.state(parent.job), await rig.state(child)) == ("canceled", "queued")
    await agent.finish(await agent.take_one())
    await rig.scheduling()
    assert await rig.state(parent.job) == "canceled"


async def test_two_who_end_the_same_wait_continue_the_job_once(rig: Rig) -> None:
    agent = await rig.agent(slots=1)
    parent, _ = await suspended_parent(rig, agent)
    rig.engine._joined.clear()
    await agent.finish(await agent.take_one())
    ended = [await rig.engine.run(lambda work: end_joins(work, [parent.job])) for _ in range(2)]
    assert ended == [1, 0]
    assert [move[1] for move in await rig.moves(parent.job)].count("queued") == 2

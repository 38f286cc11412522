"""Results of steps: stored once, kept for the next attempt, and only by the holder of the lease."""

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, Rig
from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.steps import StepKind
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.engine.fleet.epochs import begin_epoch
from windlass.messages.sync import Assignment
from windlass.ports.gateway import Holder


def holder(agent: Agent, job: Assignment) -> Holder:
    return Holder(agent.id, agent.incarnation, job.job, job.attempt)


async def test_a_retry_finds_what_the_attempt_before_has_stored(rig: Rig) -> None:
    await rig.submit()
    agent, steps = await rig.agent(), rig.engine.steps
    first = await agent.take_one()
    assert await steps.find(holder(agent, first), "load") is None
    await steps.store_result(holder(agent, first), "load", {"rows": 3})
    await agent.fail(first, FailureClass.NETWORK, "down")
    await rig.advance(MINUTE)
    second = await agent.take_one()
    found = await steps.find(holder(agent, second), "load")
    assert found is not None
    assert (found.value, found.attempt, found.kind) == (b'{"rows":3}', 1, StepKind.CALL)
    # The first value stays, also if a message is repeated.
    assert (await steps.store_result(holder(agent, second), "load", 9)).value == b'{"rows":3}'


async def test_a_lost_attempt_stores_nothing(rig: Rig) -> None:
    job = await rig.submit()
    steps = rig.engine.steps
    old = await rig.agent("old")
    lost = holder(old, await old.take_one())
    await rig.pass_time(5 * MINUTE)
    assert await rig.state(job) == "retrying"
    with pytest.raises(Conflict, match="not held") as refusal:
        await steps.store_result(lost, "k", 1)
    assert refusal.value.code == "lease_lost"
    await rig.advance(MINUTE)
    new = await rig.agent("new")
    held = holder(new, await new.take_one())
    for intruder in (lost, held._replace(attempt=1), held._replace(incarnation=99)):
        with pytest.raises(Conflict, match="not held"):
            await steps.find(intruder, "k")
        with pytest.raises(Conflict, match="not held"):
            await steps.sleep(intruder, "s", 5)
        with pytest.raises(Conflict, match="not held"):
            await steps.send_from(intruder, "go", None, "k")
    snapshot = await rig.snapshot()
    assert (snapshot.steps, snapshot.signals) == ((), ())


async def test_an_attempt_that_is_told_to_stop_stores_nothing(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    taken = await agent.take_one()
    await rig.engine.jobs.cancel([job])
    with pytest.raises(Conflict, match="told to stop") as refusal:
        await rig.engine.steps.store_result(holder(agent, taken), "k", 1)
    assert refusal.value.code == "lease_lost"
    assert (await rig.snapshot()).steps == ()


async def test_an_attempt_of_an_old_epoch_stores_nothing(rig: Rig) -> None:
    await rig.submit()
    agent = await rig.agent()
    taken = holder(agent, await agent.take_one())
    await rig.engine.steps.store_result(taken, "before", 1)
    await rig.engine.run(lambda work: begin_epoch(work, None))
    await rig.engine.refresh()
    with pytest.raises(Conflict, match="not held"):
        await rig.engine.steps.store_result(taken, "after", 1)
    assert [step.key for step in (await rig.snapshot()).steps] == ["before"]


async def test_the_number_and_the_size_of_steps_are_bounded(rig: Rig) -> None:
    await rig.restart(Config(steps_limit=2, step_limit=10))
    await rig.submit()
    agent, steps = await rig.agent(), rig.engine.steps
    taken = holder(agent, await agent.take_one())
    with pytest.raises(InvalidInput, match="at most 10 bytes"):
        await steps.store_result(taken, "large", "x" * 9)
    await steps.store_result(taken, "a", "x" * 8)
    await steps.sleep(taken, "b", 5)
    with pytest.raises(InvalidInput, match="at most 2 steps"):
        await steps.store_result(taken, "c", 1)
    with pytest.raises(InvalidInput, match="at most 2 steps"):
        await steps.sleep(taken, "d", 5)
    with pytest.raises(InvalidInput, match="printable"):
        await steps.store_result(taken, "a\nb", 1)


async def test_a_key_belongs_to_one_kind_of_step(rig: Rig) -> None:
    await rig.submit()
    agent, steps = await rig.agent(), rig.engine.steps
    taken = holder(agent, await agent.take_one())
    await steps.store_result(taken, "k", 1)
    await steps.wait_for(taken, "w", "paid", None)
    for wrong in (
        steps.sleep(taken, "k", 5),
        steps.wait_for(taken, "w", "sent", None),
        steps.find(taken, "w"),
    ):
        with pytest.raises(Conflict, match="belongs to another step"):
            await wrong


async def test_a_retry_by_hand_starts_with_no_steps(rig: Rig) -> None:
    job = await rig.submit()
    agent, steps = await rig.agent(), rig.engine.steps
    taken = await agent.take_one()
    await steps.store_result(holder(agent, taken), "k", 1)
    await agent.fail(taken, FailureClass.EXECUTION)
    again = await rig.engine.jobs.retry(job)
    second = await agent.take_one()
    assert second.job == again.id
    assert await steps.find(holder(agent, second), "k") is None

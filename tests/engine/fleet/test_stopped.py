"""A worker that was stopped without a server tells it at its next start what became of its jobs."""

from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import Rig
from windlass.domain.values.errors import Conflict
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.verify.check import verify
from windlass.messages.sync import Finished, Stopped


async def start_again(rig: Rig, agent: Agent, *finished: Finished, **fields: Any) -> None:
    """The next process of the same worker enrols."""
    stopped = Stopped(agent.incarnation, finished)
    told = {"takeover": True, "replaces": agent.incarnation, "stopped": stopped, **fields}
    await rig.engine.workers.enrol(Enrolment(name=agent.name, **told))


async def test_what_it_held_is_handed_back_and_its_results_are_taken(rig: Rig) -> None:
    agent = await rig.agent()
    done, running, assigned = [await rig.submit() for _ in range(3)]
    await agent.take(2)
    await agent.take(1, prefetch=True)
    result = Finished(done, 1, "completed", 0, None, None, {"answer": 42})
    await start_again(rig, agent, result)
    assert [await rig.state(job) for job in (done, running, assigned)] == [
        "completed", "queued", "queued",
    ]  # fmt: skip
    for job in (running, assigned):
        record = await rig.record(job)
        assert (record.facts.failed, record.facts.lost, record.facts.excluded) == (0, 0, None)
    assert await verify(rig.store, rig.engine.config) == []


async def test_it_is_told_again_after_a_lost_answer_and_changes_nothing(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit()
    await agent.take()
    await start_again(rig, agent)
    await start_again(rig, agent)
    assert await rig.state(job) == "queued"


async def test_a_process_that_may_still_run_hands_nothing_back(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit()
    await agent.take()
    stranger = Stopped(agent.incarnation, (Finished(job, 1),))
    for fields in ({"takeover": False}, {"takeover": True, "replaces": 0}):
        with pytest.raises(Conflict, match="still holds 1 job;"):
            await start_again(rig, agent, stopped=stranger, **fields)
    assert await rig.state(job) == "running"


async def test_a_worker_that_was_not_stopped_counts_as_lost(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit()
    await agent.take()
    await start_again(rig, agent, stopped=None)
    assert (await rig.record(job)).facts.lost == 1

"""Arguments that do not fit, seen only by a worker: the job is rejected, nothing else suffers."""

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import Rig
from windlass.domain.job.forms import Concurrency
from windlass.domain.lifecycle.failures import FailureClass
from windlass.messages.sync import Assignment, Finished, SyncReply

WHY = "expected args.width to be a number, got 'wide'"
CONFIGURATION = FailureClass.CONFIGURATION


async def misfit(agent: Agent, job: Assignment) -> SyncReply:
    return await agent.finish(job, "failed", failure=CONFIGURATION.value, message=WHY, misfit=True)


async def test_what_was_running_goes_back_and_is_rejected(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await misfit(agent, await agent.take_one())
    assert (await rig.moves(job))[-3:] == [
        ("running", "retrying"), ("retrying", "queued"), ("queued", "rejected"),
    ]  # fmt: skip
    record = await rig.record(job)
    assert (record.failure, record.message, record.reason) == (CONFIGURATION.code, WHY, WHY)
    assert (record.facts.failed, record.facts.lost, record.facts.returned) == (0, 0, 0)
    assert await agent.take() == ()


async def test_what_was_not_started_never_runs(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await misfit(agent, await agent.take_one(prefetch=True))
    assert (await rig.moves(job))[-3:] == [
        ("queued", "assigned"), ("assigned", "queued"), ("queued", "rejected"),
    ]  # fmt: skip


async def test_the_next_job_is_given_out_with_the_same_answer(rig: Rig) -> None:
    await rig.submit()
    agent = await rig.agent(slots=1)
    held = await agent.take_one()
    behind = await rig.submit()
    said = Finished(
        held.job, held.attempt, "failed", failure="configuration", message=WHY, misfit=True
    )
    reply = await agent.sync(finished=(said,), want=1)
    assert [job.job for job in reply.jobs] == [behind]


async def test_saying_it_twice_changes_nothing_and_a_stranger_is_refused(rig: Rig) -> None:
    job = await rig.submit()
    agent, stranger = await rig.agent(), await rig.agent("stranger")
    held = await agent.take_one()
    assert [lost.job for lost in (await misfit(stranger, held)).lost] == [job]
    assert await rig.state(job) == "running"
    await misfit(agent, held)
    before = await rig.events()
    assert (await misfit(agent, held)).lost == ()
    assert len(await rig.events()) == len(before)


async def test_dependents_follow_the_rules_of_a_job_that_did_not_complete(rig: Rig) -> None:
    done = await rig.submit_all(
        {"name": "bad"},
        {"name": "after", "after": ("bad",)},
        {"name": "anyway", "after_any": ("bad",)},
        workflow="w",
    )
    agent = await rig.agent()
    await misfit(agent, await agent.take_one())
    await rig.engine.settled()
    assert await rig.states(*done.ids) == ["rejected", "aborted", "queued"]
    await agent.finish(await agent.take_one())
    (flow,) = (await rig.snapshot()).workflows
    assert flow.finished_at


async def test_one_that_may_fail_frees_its_dependents(rig: Rig) -> None:
    done = await rig.submit_all(
        {"name": "bad", "allow_failure": True}, {"name": "after", "after": ("bad",)}, workflow="w"
    )
    agent = await rig.agent()
    await misfit(agent, await agent.take_one())
    await rig.engine.settled()
    assert await rig.states(*done.ids) == ["rejected", "queued"]


async def test_a_limit_has_its_slot_back(rig: Rig) -> None:
    one = Concurrency("db", 1)
    first, second = await rig.submit(concurrency=one), await rig.submit(concurrency=one)
    agent = await rig.agent()
    await misfit(agent, await agent.take_one())
    assert [job.job for job in await agent.take(2)] == [second]
    assert await rig.state(first) == "rejected"


async def test_a_job_that_asked_for_it_is_tried_again(rig: Rig) -> None:
    job = await rig.submit(retry_on=("configuration",), retries=1)
    agent = await rig.agent()
    await misfit(agent, await agent.take_one())
    assert await rig.state(job) == "retrying"
    await rig.advance(5_000)
    await misfit(agent, await agent.take_one())
    assert await rig.state(job) == "rejected"


async def test_one_that_was_to_stop_is_canceled(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    held = await agent.take_one()
    await rig.engine.jobs.cancel([job])
    await misfit(agent, held)
    assert await rig.state(job) == "canceled"


async def test_a_retry_by_hand_takes_it(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await misfit(agent, await agent.take_one())
    again = await rig.engine.jobs.retry(job, "me")
    assert [held.job for held in await agent.take()] == [again.id]


@pytest.mark.parametrize("failure", ["execution", "resource"])
async def test_only_configuration_can_be_a_misfit(rig: Rig, failure: str) -> None:
    job = await rig.submit(retries=0)
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), "failed", failure=failure, misfit=True)
    assert await rig.state(job) == "failed"

"""A worker without a function hands its job back, is no match from then on, and explain says so."""

from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, Rig
from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.matching.functions import KNOWN, MISSING, UNSEEN, VERSIONS
from windlass.engine.loops.capability import CapabilityLoop
from windlass.messages.sync import Assignment, Released, SyncReply

FUNCTION = "shop.tasks:send_mail"
WHY = "ModuleNotFoundError: No module named 'shop'"
ASKS: dict[str, Any] = {"requires": (f"{MISSING}!={FUNCTION}",)}
GRACE = Config().capability_grace_ms or 0


async def hand_back(agent: Agent, job: Assignment, **metadata: object) -> SyncReply:
    """Says that it cannot run the job, as agents do: with the reason in its metadata."""
    told = Released(job.job, job.attempt, reason=f"cannot run {FUNCTION}", unable=True)
    return await agent.sync(
        released=(told,), metadata={MISSING: {FUNCTION: WHY}} | metadata, want=1
    )


async def test_it_waits_for_a_worker_that_has_the_function(rig: Rig) -> None:
    job = await rig.submit(**ASKS, retries=0)
    agent = await rig.agent("a", slots=1)
    behind = await rig.submit()
    reply = await hand_back(agent, await agent.take_one())
    # In the same answer the worker gets another job, and not this one again.
    assert [one.job for one in reply.jobs] == [behind]
    assert await rig.state(job) == "queued"
    record = await rig.record(job)
    assert (record.facts.failed, record.facts.lost, record.facts.returned) == (0, 0, 0)
    tried = (await rig.store.read(lambda tx: tx.jobs.attempts([job])))[job]
    assert [one.failure for one in tried] == [FailureClass.CONFIGURATION.code]
    other = await rig.agent("b", slots=1)
    taken = await other.take_one()
    assert (taken.job, taken.attempt, taken.handed_back) == (job, 2, 1)


async def test_a_worker_that_was_restarted_with_the_code_gets_it_at_once(rig: Rig) -> None:
    job = await rig.submit(**ASKS)
    agent = await rig.agent("a", slots=1)
    await hand_back(agent, await agent.take_one())
    assert await agent.take() == ()
    await agent.enrol(slots=1, takeover=True)
    assert (await agent.take_one()).job == job


async def test_explain_names_the_function_the_workers_and_the_reason(rig: Rig) -> None:
    job = await rig.submit(**ASKS)
    for name in ("a", "b"):
        agent = await rig.agent(name)
        await hand_back(agent, await agent.take_one())
    told = await rig.engine.explain.job(job)
    assert told.summary == (
        f"queued: waits for a worker with the function {FUNCTION}: workers a, b tried and got {WHY}"
        "; a worker tries again when it is restarted"
    )
    assert [entry.has for entry in told.workers] == [WHY]
    assert told.smallest_change is not None
    assert told.smallest_change.text == (
        "restart worker a where its code is found (or start it with --reload), or add a worker "
        f"like a with the function {FUNCTION}"
    )


async def test_code_that_jobs_cannot_see_is_explained_to_the_end(rig: Rig) -> None:
    job = await rig.submit(**ASKS)
    agent = await rig.agent("a")
    why = f"{WHY}; shop.py is in the folder in which the worker was started, {UNSEEN}: move it"
    await hand_back(agent, await agent.take_one(), **{MISSING: {FUNCTION: why}})
    told = await rig.engine.explain.job(job)
    assert [entry.has for entry in told.workers] == [why]
    assert told.smallest_change is not None
    assert told.smallest_change.text.startswith("restart worker a where jobs can read its code, or")


async def test_it_is_rejected_after_the_grace_though_the_worker_had_not_tried_before(
    rig: Rig,
) -> None:
    # Its metadata of the last week counts for machines, not for code that it had not tried.
    agent = await rig.agent("a", metadata={"system:gpus": 1})
    await agent.sync(metadata={"system:gpus": 1, "x": 1})
    job = await rig.submit(**ASKS)
    await hand_back(agent, await agent.take_one(), **{"system:gpus": 1, "x": 1})
    loop = CapabilityLoop(rig.engine)
    await loop.run_once(rig.now)
    await rig.advance(GRACE - MINUTE)
    await loop.run_once(rig.now)
    assert await rig.state(job) == "queued"
    await rig.advance(2 * MINUTE)
    await loop.run_once(rig.now)
    await rig.engine.settled()
    assert await rig.state(job) == "rejected"
    assert WHY in ((await rig.record(job)).reason or "")


async def test_what_is_found_out_about_functions_does_not_push_out_past_metadata(rig: Rig) -> None:
    agent = await rig.agent("a", metadata={"system:gpus": 1})
    await agent.sync(metadata={})
    for number in range(30):
        await agent.sync(metadata={MISSING: {f"m:f{number}": WHY}})
    past = await rig.store.read(lambda tx: tx.workers.past(0))
    assert [row.dynamic for row in past] == ['{"system:gpus":1}']


async def test_a_job_that_does_not_ask_for_the_function_is_rejected(rig: Rig) -> None:
    # Else the same worker would get it again and again.
    job = await rig.submit()
    agent = await rig.agent("a", slots=1)
    await hand_back(agent, await agent.take_one())
    assert await rig.state(job) == "rejected"


async def test_a_job_that_is_being_canceled_is_canceled(rig: Rig) -> None:
    job = await rig.submit(**ASKS)
    agent = await rig.agent("a", slots=1)
    held = await agent.take_one()
    await rig.engine.jobs.cancel([job], "enough")
    await hand_back(agent, held)
    assert await rig.state(job) == "canceled"


async def test_only_the_holder_can_hand_it_back(rig: Rig) -> None:
    job = await rig.submit(**ASKS)
    agent, stranger = await rig.agent("a", slots=1), await rig.agent("b", slots=1)
    held = await agent.take_one()
    reply = await hand_back(stranger, held)
    assert [lost.job for lost in reply.lost] == [job]
    assert await rig.state(job) == "running"


@pytest.mark.parametrize("prefetch", [False, True])
async def test_one_that_was_not_started_goes_on_as_well(rig: Rig, prefetch: bool) -> None:
    job = await rig.submit(**ASKS)
    agent = await rig.agent("a", slots=1)
    await hand_back(agent, await agent.take_one(prefetch=prefetch))
    assert await rig.state(job) == "queued"
    assert (await rig.record(job)).facts.excluded is None


async def test_a_version_is_asked_of_the_worker(rig: Rig) -> None:
    job = await rig.submit(task="mail", version="2")
    old = await rig.agent("old", metadata={VERSIONS: {"mail": "1"}, KNOWN: ["shop:mail"]})
    assert await old.take() == ()
    told = (await rig.engine.explain.job(job)).summary
    assert "version 2 of mail" in told
    assert "got version 1" in told
    other = await rig.agent("other", metadata={VERSIONS: {"mail": "2"}})
    assert (await other.take_one()).job == job


async def test_a_job_without_a_version_runs_everywhere(rig: Rig) -> None:
    job = await rig.submit(task="mail")
    old = await rig.agent("old", metadata={VERSIONS: {"mail": "1"}})
    assert (await old.take_one()).job == job

"""Retry by hand: a new job takes an ended one's place, and what hung on it follows."""

from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import HOUR, SECOND, Rig
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import Conflict
from windlass.messages.jobs import RetryReply


async def failed_job(rig: Rig, agent: Agent, **fields: object) -> int:
    """A job that has failed for good."""
    job = await rig.submit(**fields)  # type: ignore[arg-type]
    await agent.finish(await agent.take_one(), "failed")
    await rig.engine.settled()
    return job


async def test_a_failed_job_is_superseded_by_a_new_one(rig: Rig) -> None:
    agent = await rig.agent()
    old = await failed_job(rig, agent, args={"a": 1}, priority=3)
    done = await rig.engine.jobs.retry(old, actor="ann")
    assert done.applied
    new = done.id
    assert await rig.states(old, new) == ["failed", "queued"]
    before, after = (await rig.record(old)).facts, (await rig.record(new)).facts
    assert (before.superseded_by, after.supersedes) == (new, old)
    assert (after.base, after.shape, after.attempt) == (3, before.shape, 0)
    assert bytes((await agent.take_one()).spec) == (await rig.record(old)).spec


async def test_it_answers_with_the_newest_of_the_chain(rig: Rig) -> None:
    agent = await rig.agent()
    first = await failed_job(rig, agent)
    second = (await rig.engine.jobs.retry(first)).id
    assert await rig.engine.jobs.retry(first) == RetryReply(second, applied=False)
    await agent.finish(await agent.take_one(), "failed")
    third = (await rig.engine.jobs.retry(second)).id
    assert await rig.engine.jobs.retry(first) == RetryReply(third, applied=False)
    assert await rig.engine.jobs.retry(second) == RetryReply(third, applied=False)


@pytest.mark.parametrize("ended", ["canceled", "aborted"])
async def test_canceled_and_aborted_jobs_can_be_retried(rig: Rig, ended: str) -> None:
    job = await rig.submit(unblock="manual")
    if ended == "canceled":
        await rig.engine.jobs.cancel([job])
    else:
        await rig.engine.jobs.unblock(job, accept=False)
    assert await rig.state(job) == ended
    new = (await rig.engine.jobs.retry(job)).id
    assert await rig.state(new) == "blocked"
    await rig.engine.jobs.unblock(new)
    assert await rig.state(new) == "queued"


async def test_an_open_job_cannot_be_retried(rig: Rig) -> None:
    job = await rig.submit()
    with pytest.raises(Conflict, match="still open") as refused:
        await rig.engine.jobs.retry(job)
    assert refused.value.code == "not_retryable"


async def test_a_completed_job_cannot_be_retried(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit()
    await agent.finish(await agent.take_one())
    with pytest.raises(Conflict, match="it is completed"):
        await rig.engine.jobs.retry(job)


async def test_the_new_job_starts_its_age_and_its_counters_anew(rig: Rig) -> None:
    agent = await rig.agent()
    old = await failed_job(rig, agent)
    await rig.advance(SECOND)
    waiting = await rig.submit()
    await rig.advance(SECOND)
    new = (await rig.engine.jobs.retry(old)).id
    assert await rig.order(agent, 2) == [waiting, new]
    facts = (await rig.record(new)).facts
    assert (facts.failed, facts.lost, facts.returned) == (0, 0, 0)


async def test_a_quarantined_job_is_released_by_a_retry(rig: Rig) -> None:
    job = await rig.submit()
    for name in ("one", "two", "three"):
        agent = await rig.agent(name)
        await agent.finish(await agent.take_one(), "failed", failure="worker_lost")
        await rig.advance(60 * SECOND)
    assert (await rig.record(job)).facts.flags == 2
    new = (await rig.engine.jobs.retry(job)).id
    assert (await rig.record(new)).facts.flags == 0


async def test_aborted_dependents_are_revived(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    second = await rig.submit(after=(first,))
    third = await rig.submit(after=(second,))
    await agent.finish(await agent.take_one(), "failed")
    await rig.engine.settled()
    await rig.engine.jobs.retry(first)
    newer = [(await rig.record(j)).facts.superseded_by for j in (second, third)]
    revived = [job for job in newer if job is not None]
    assert await rig.states(*revived) == ["blocked", "blocked"]
    for job in revived:
        await agent.finish(await agent.take_one())
        assert await rig.state(job) == "queued"


async def test_a_revived_job_waits_only_for_what_is_left(rig: Rig) -> None:
    agent = await rig.agent()
    done = await rig.submit()
    await agent.finish(await agent.take_one())
    bad = await rig.submit()
    job = await rig.submit(after=(done, bad))
    await agent.finish(await agent.take_one(), "failed")
    await rig.engine.settled()
    await rig.engine.jobs.retry(bad)
    revived = (await rig.record(job)).facts.superseded_by
    assert revived is not None
    await agent.finish(await agent.take_one())
    assert await rig.state(revived) == "queued"


async def test_a_job_whose_cause_still_stands_is_not_revived(rig: Rig) -> None:
    agent = await rig.agent()
    left, right = [await rig.submit(args=n) for n in range(2)]
    job = await rig.submit(after=(left, right))
    for _ in range(2):
        await agent.finish(await agent.take_one(), "failed")
    await rig.engine.settled()
    await rig.engine.jobs.retry(left)
    assert (await rig.record(job)).facts.superseded_by is None
    with pytest.raises(
        Conflict, match=f"job {right}, which is failed: retry that job first"
    ) as refused:
        await rig.engine.jobs.retry(job)
    assert refused.value.code == "cause_stands"
    await rig.engine.jobs.retry(right)
    assert (await rig.record(job)).facts.superseded_by is not None


async def test_a_queued_dependent_waits_again(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit(allow_failure=True)
    job = await rig.submit(after=(first,))
    await agent.finish(await agent.take_one(), "failed")
    assert await rig.state(job) == "queued"
    await rig.engine.jobs.retry(first)
    assert (await rig.moves(job))[-1] == ("queued", "blocked")
    await agent.finish(await agent.take_one())
    assert await rig.state(job) == "queued"


async def test_a_dependent_that_waits_for_others_too_waits_for_one_more(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit(args=1)
    other = await rig.submit(args=2, unblock="manual")
    job = await rig.submit(after_any=(first,), after=(other,))
    await agent.finish(await agent.take_one(), "failed")
    new = (await rig.engine.jobs.retry(first)).id
    await rig.engine.jobs.unblock(other)
    taken = await agent.take(2)
    assert sorted(j.job for j in taken) == sorted([new, other])
    await agent.finish(next(j for j in taken if j.job == new))
    assert await rig.state(job) == "blocked"
    await agent.finish(next(j for j in taken if j.job == other))
    assert await rig.state(job) == "queued"


async def test_a_planned_dependent_waits_again_and_keeps_its_time(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    job = await rig.submit(after_any=(first,), not_before=rig.now + HOUR)
    await agent.finish(await agent.take_one(), "failed")
    await rig.engine.jobs.retry(first)
    assert await rig.state(job) == "blocked"
    await agent.finish(await agent.take_one())
    assert await rig.state(job) == "queued"
    assert await agent.take() == ()


async def test_a_running_dependent_goes_on(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit(allow_failure=True)
    job = await rig.submit(after=(first,))
    await agent.finish(await agent.take_one(), "failed")
    running = await agent.take_one()
    new = (await rig.engine.jobs.retry(first)).id
    assert await rig.state(job) == "running"
    await agent.finish(running)
    assert await rig.state(job) == "completed"
    await agent.finish(await agent.take_one())
    assert await rig.states(new, job) == ["completed", "completed"]


async def test_a_running_dependent_that_comes_back_is_blocked(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit(allow_failure=True)
    job = await rig.submit(after=(first,))
    await agent.finish(await agent.take_one(), "failed")
    running = await agent.take_one()
    await rig.engine.jobs.retry(first)
    await agent.finish(running, "failed", failure="network")
    assert (await rig.moves(job))[-2:] == [("running", "retrying"), ("retrying", "blocked")]
    await agent.finish(await agent.take_one())
    assert await rig.state(job) == "queued"


async def test_a_running_dependent_that_comes_back_late_is_not_blocked(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit(allow_failure=True)
    job = await rig.submit(after=(first,))
    await agent.finish(await agent.take_one(), "failed")
    running = await agent.take_one()
    await rig.engine.jobs.retry(first)
    await agent.finish(await agent.take_one())
    await agent.finish(running, "failed", failure="network")
    assert await rig.state(job) == "retrying"


async def test_a_running_dependent_can_still_be_canceled(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit(allow_failure=True)
    job = await rig.submit(after=(first,))
    await agent.finish(await agent.take_one(), "failed")
    running = await agent.take_one()
    await rig.engine.jobs.retry(first)
    await rig.engine.jobs.cancel([job])
    await agent.finish(running, "canceled")
    assert await rig.state(job) == "canceled"


async def test_a_completed_dependent_stays(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit(allow_failure=True)
    job = await rig.submit(after=(first,))
    await agent.finish(await agent.take_one(), "failed")
    await agent.finish(await agent.take_one())
    await rig.engine.jobs.retry(first)
    assert await rig.state(job) == "completed"


async def test_a_workflow_opens_again_with_a_new_run(rig: Rig) -> None:
    agent = await rig.agent()
    submitted = await rig.submit_all({}, workflow="build")
    await agent.finish(await agent.take_one(), "failed")
    (before,) = (await rig.snapshot()).workflows
    assert (before.state, before.run) == (5, 1)
    await rig.engine.jobs.retry(submitted.ids[0])
    (during,) = (await rig.snapshot()).workflows
    assert (during.state, during.run, during.finished_at) == (2, 2, None)
    await agent.finish(await agent.take_one())
    (after,) = (await rig.snapshot()).workflows
    assert (after.state, after.run, after.finished_at) == (4, 2, rig.now)


async def test_the_key_points_to_the_newest(rig: Rig) -> None:
    agent = await rig.agent()
    old = await failed_job(rig, agent, key="k")
    new = (await rig.engine.jobs.retry(old)).id
    assert await rig.submit(key="k") == new


async def test_a_job_whose_key_another_has_cannot_come_back(rig: Rig) -> None:
    agent = await rig.agent()
    old = await failed_job(rig, agent, key="k")
    other = await rig.submit(key="k")
    with pytest.raises(Conflict, match=f"job {other} now has the key 'k' of job {old}") as refused:
        await rig.engine.jobs.retry(old)
    assert refused.value.code == "key_taken"
    await agent.finish(await agent.take_one())
    new = (await rig.engine.jobs.retry(old)).id
    assert await rig.submit(key="k") == new


async def test_a_retry_is_logged_with_its_actor(rig: Rig) -> None:
    old = await failed_job(rig, await rig.agent())
    new = (await rig.engine.jobs.retry(old, actor="ann")).id
    (event,) = [e for e in await rig.events() if e.kind == EventKind.SUPERSEDE]
    assert (event.job, event.actor) == (old, "ann")
    assert event.reason == f"Job {old} superseded by job {new}"


@pytest.mark.parametrize("kind", ["after", "after_any"])
async def test_who_names_a_superseded_job_waits_for_the_one_in_its_place(
    rig: Rig, kind: str
) -> None:
    old = await rig.submit(retries=0)
    agent = await rig.agent()
    await agent.fail(await agent.take_one())
    middle = (await rig.engine.jobs.retry(old)).id
    await agent.fail(await agent.take_one())
    new = (await rig.engine.jobs.retry(middle)).id
    named: list[dict[str, Any]] = [{kind: (old, new)}, {kind: (old,)}]
    both, waiting = [await rig.submit(**fields) for fields in named]
    assert await rig.states(both, waiting) == ["blocked", "blocked"]
    running = await agent.take_one()
    assert running.job == new
    await agent.finish(running)
    await rig.engine.settled()
    assert await rig.states(both, waiting) == ["queued", "queued"]


async def test_a_wait_kept_for_a_run_goes_with_the_job(rig: Rig) -> None:
    first = await rig.submit()
    then = await rig.submit(after_any=(first,))
    agent = await rig.agent()
    await agent.fail(await agent.take_one(), FailureClass.EXECUTION)
    held = await agent.take_one()
    assert held.job == then
    await rig.engine.jobs.retry(first)
    await rig.scheduling()
    assert [wait.job for wait in (await rig.snapshot()).waits] == [then]
    await agent.finish(held)
    assert await rig.state(then) == "completed"
    assert (await rig.snapshot()).waits == ()

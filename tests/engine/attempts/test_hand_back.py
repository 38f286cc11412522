"""Giving attempts back: no fault of the job, but not for ever."""

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.access.rights import Identity, Role
from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.operations.queries import Queries

ROOT = Identity(1, "root", Role.ADMIN)


async def test_an_unstarted_job_goes_back_into_the_queue_at_once(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.release(await agent.take_one(prefetch=True))
    assert (await rig.moves(job))[-1] == ("assigned", "queued")
    assert [again.job for again in await agent.take()] == [job]


async def test_a_hand_back_uses_up_no_retry(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.release(await agent.take_one(prefetch=True))
    facts = (await rig.record(job)).facts
    assert (facts.failed, facts.lost, facts.returned) == (0, 0, 1)


async def test_a_refused_job_stays_away_from_that_worker_for_ten_minutes(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.release(await agent.take_one(prefetch=True), "no disk")
    await rig.advance(10 * MINUTE - 1)
    assert await agent.take() == ()
    await rig.advance(1)
    assert [again.job for again in await agent.take()] == [job]


async def test_a_refused_job_goes_to_another_worker_after_its_backoff(rig: Rig) -> None:
    job = await rig.submit()
    picky, other = await rig.agent("picky"), await rig.agent("other")
    await picky.release(await picky.take_one(prefetch=True), "no disk")
    assert await rig.state(job) == "queued"
    await rig.advance(5 * SECOND - 1)
    assert await other.take() == ()
    await rig.advance(1)
    assert [again.job for again in await other.take()] == [job]


async def test_a_refused_job_does_not_hold_back_the_next_one(rig: Rig) -> None:
    agent = await rig.agent()
    for n in range(3):
        await rig.submit(args=n)
    for job in await agent.take(3, prefetch=True):
        await agent.release(job, "no disk")
    await rig.advance(5 * SECOND)
    behind = await rig.submit(args="behind")
    assert [job.job for job in await agent.take()] == [behind]


async def test_refusals_back_off_longer_and_longer(rig: Rig) -> None:
    await rig.submit()
    for number, wait in enumerate((5, 10, 20)):
        agent = await rig.agent(f"w{number}")
        await agent.release(await agent.take_one(prefetch=True), "no")
        other = await rig.agent(f"other{number}")
        await rig.advance(wait * SECOND - 1)
        assert await other.take(prefetch=True) == ()
        await rig.advance(1)


async def test_one_return_too_many_fails_the_job(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    for _ in range(20):
        await agent.release(await agent.take_one(prefetch=True))
    assert await rig.state(job) == "queued"
    await agent.release(await agent.take_one(prefetch=True))
    assert await rig.state(job) == "failed"
    assert (await rig.record(job)).reason == "handed back too often (21 times, 20 allowed)"


async def test_the_number_of_returns_is_configured(rig: Rig) -> None:
    await rig.restart(Config(retry=RetryPolicy(max_returned=0)))
    job = await rig.submit()
    agent = await rig.agent()
    await agent.release(await agent.take_one(prefetch=True))
    assert await rig.state(job) == "failed"


@pytest.mark.parametrize("reason", [None, "preempted"])
async def test_a_running_job_given_back_is_tried_again_at_once_and_uncounted(
    rig: Rig, reason: str | None
) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    for _ in range(10):
        await agent.release(await agent.take_one(), reason)
    facts = (await rig.record(job)).facts
    assert (facts.failed, facts.lost, facts.returned, facts.attempt) == (0, 0, 0, 10)
    assert (await rig.moves(job))[-2:] == [("running", "retrying"), ("retrying", "queued")]
    assert [again.attempt for again in await agent.take()] == [11]


async def test_the_reason_is_kept_with_the_attempt(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.release(await agent.take_one(), "machine shuts down")
    (attempt,) = (await rig.snapshot()).attempts
    assert (attempt.job, attempt.number, attempt.message) == (job, 1, "machine shuts down")


async def test_what_the_server_lacks_is_waited_for_without_blame_and_explained(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    reason = "the disk that holds /blobs is full: free some space"
    for wait in (5, 10, 20, 40, 80, 160, 300, 300):
        await agent.release(await agent.take_one(), reason, back_off=True)
        assert await rig.state(job) == "retrying"
        (waiting,) = (await rig.engine.explain.job(job)).waiting_for
        assert (waiting.kind, waiting.because) == ("backoff", (reason,))
        await rig.advance(wait * SECOND - 1)
        assert await agent.take() == ()
        await rig.advance(1)
    facts = (await rig.record(job)).facts
    assert (facts.failed, facts.lost, facts.returned, facts.attempt) == (0, 0, 0, 8)
    (worker,) = (await rig.snapshot()).workers
    assert (worker.troubles, worker.reason) == (None, None)


async def hand_back_twice(rig: Rig, agent: Agent) -> int:
    job = await rig.submit(retries=3)
    for _ in range(2):
        await agent.release(await agent.take_one(prefetch=True))
    return job


async def test_numbers_rise_with_a_hand_back_but_people_do_not_count_it(rig: Rig) -> None:
    agent = await rig.agent()
    job = await hand_back_twice(rig, agent)
    assert (await Queries(rig.engine).job(job, ROOT)).attempt == 0
    third = await agent.take_one()
    assert (third.attempt, third.handed_back) == (3, 2)
    shown = await Queries(rig.engine).job(job, ROOT)
    assert (shown.attempt, shown.retry_count) == (1, 0)
    assert [(a.number, a.handed_back) for a in shown.attempts] == [(1, True), (1, True), (1, False)]
    assert {move.attempt for move in shown.transitions if move.to == "running"} == {1}
    (listed,) = (await rig.engine.store.read(lambda tx: tx.jobs.read([job]))).values()
    assert (listed.attempt, listed.handed_back) == (2, 2)


async def test_a_stale_report_of_a_handed_back_attempt_changes_nothing(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit()
    first = await agent.take_one(prefetch=True)
    await agent.release(first)
    await agent.take_one()
    reply = await agent.finish(first)
    assert not reply.applied
    assert await rig.state(job) == "running"


async def test_the_log_counts_the_attempts_that_ran(rig: Rig) -> None:
    agent = await rig.agent()
    job = await hand_back_twice(rig, agent)
    await agent.fail(await agent.take_one(), FailureClass.EXECUTION)
    retried = [event for event in await rig.events() if event.job == job][-1]
    assert '"next":2' in (retried.data or "").replace(" ", "")
    await rig.advance(MINUTE)
    again = await agent.take_one()
    assert (again.attempt, again.handed_back) == (4, 2)
    shown = await Queries(rig.engine).job(job, ROOT)
    assert [a.number for a in shown.attempts if not a.handed_back] == [1, 2]
    assert shown.attempt == 2


async def test_a_lost_answer_is_sent_again_with_what_was_handed_back(rig: Rig) -> None:
    agent = await rig.agent()
    await hand_back_twice(rig, agent)
    given = await agent.take_one()
    again = await agent.sync(received=given.lease - 1)
    assert list(again.jobs) == [given]

"""Canceling a job in every state it can be in."""

import pytest

from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.job.forms import Concurrency
from windlass.engine.commands import jobs as commands
from windlass.messages.sync import Finished


async def cancel(rig: Rig, job: int) -> tuple[str | None, bool]:
    (answer,) = await rig.engine.jobs.cancel([job], reason="not needed", actor="ann")
    assert answer.id == job
    return answer.state, answer.applied


async def test_a_queued_job_is_canceled_at_once(rig: Rig) -> None:
    job = await rig.submit()
    assert await cancel(rig, job) == ("canceled", True)
    assert await (await rig.agent()).take() == ()


async def test_a_blocked_job_is_canceled_at_once(rig: Rig) -> None:
    job = await rig.submit(unblock="manual")
    assert await cancel(rig, job) == ("canceled", True)
    assert await rig.moves(job) == [(None, "blocked"), ("blocked", "canceled")]


async def test_a_planned_job_is_canceled_at_once(rig: Rig) -> None:
    job = await rig.submit(not_before=rig.now + HOUR)
    assert await cancel(rig, job) == ("canceled", True)
    await rig.advance(HOUR)
    assert (await rig.cleanup()).promoted == 0


async def test_a_parked_job_is_canceled_at_once(rig: Rig) -> None:
    one = Concurrency(key="db", max=1)
    await rig.submit(concurrency=one)
    job = await rig.submit(concurrency=one, args=2)
    assert await cancel(rig, job) == ("canceled", True)


async def test_a_retrying_job_is_canceled_at_once(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), "failed", failure="network")
    assert await cancel(rig, job) == ("canceled", True)
    assert (await rig.moves(job))[-1] == ("retrying", "canceled")
    assert (await rig.record(job)).facts.attempt == 1


async def test_an_assigned_job_is_taken_back_at_once(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one(prefetch=True)
    assert await cancel(rig, job) == ("canceled", True)
    assert [lost.job for lost in (await agent.start(given)).lost] == [job]


async def test_a_running_job_is_told_to_stop_and_keeps_its_lease(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    assert await cancel(rig, job) == ("canceling", True)
    reply = await agent.sync()
    assert [(s.job, s.attempt, s.reason) for s in reply.cancel] == [(job, 1, "not needed")]
    await agent.finish(given, "canceled")
    assert (await rig.moves(job))[-2:] == [("running", "canceling"), ("canceling", "canceled")]


async def test_a_timed_out_job_that_still_runs_can_be_canceled(rig: Rig) -> None:
    job = await rig.submit(timeout_ms=MINUTE)
    agent = await rig.agent()
    given = await agent.take_one()
    await rig.end_grace()
    await agent.sync()
    await rig.pass_time(MINUTE)
    assert await rig.state(job) == "timed_out"
    assert await cancel(rig, job) == ("canceling", True)
    await agent.finish(given, "canceled")
    assert await rig.state(job) == "canceled"


@pytest.mark.parametrize("outcome", ["completed", "failed", "canceled", "timed_out"])
async def test_how_a_canceled_process_ended_is_kept(rig: Rig, outcome: str) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await cancel(rig, job)
    await agent.sync(finished=(Finished(given.job, given.attempt, outcome, exit_code=15),))  # type: ignore[arg-type]
    expected = "completed" if outcome == "completed" else "canceled"
    assert await rig.state(job) == expected


async def test_a_canceled_job_is_never_tried_again(rig: Rig) -> None:
    job = await rig.submit(retries=5, retry_on=("execution",))
    agent = await rig.agent()
    given = await agent.take_one()
    await cancel(rig, job)
    await agent.finish(given, "failed", failure="network")
    assert await rig.state(job) == "canceled"


async def test_a_job_the_worker_hands_back_after_a_cancel_is_canceled(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await cancel(rig, job)
    await agent.release(given)
    assert await rig.state(job) == "canceled"


async def test_a_canceling_job_whose_worker_is_lost_is_canceled(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await rig.end_grace()
    await agent.sync()
    await agent.take_one()
    await cancel(rig, job)
    await rig.pass_time(100 * SECOND)
    assert await rig.state(job) == "canceled"


@pytest.mark.parametrize("outcome", ["completed", "failed"])
async def test_an_ended_job_stays_as_it_is(rig: Rig, outcome: str) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.sync(finished=(Finished(given.job, given.attempt, outcome),))  # type: ignore[arg-type]
    assert await cancel(rig, job) == (outcome, False)


async def test_canceling_twice_is_once(rig: Rig) -> None:
    queued, running = [await rig.submit(args=n) for n in range(2)]
    await rig.engine.jobs.adjust_priority(running, 1)
    agent = await rig.agent()
    await agent.take_one()
    await rig.engine.jobs.cancel([queued, running])
    log = await rig.events()
    assert await cancel(rig, queued) == ("canceled", False)
    assert await cancel(rig, running) == ("canceling", False)
    assert await rig.events() == log


async def test_an_unknown_job_answers_with_no_state(rig: Rig) -> None:
    assert await cancel(rig, 404) == (None, False)


async def test_many_are_canceled_in_one_call_and_answered_in_order(rig: Rig) -> None:
    jobs = (await rig.submit_all(*[{"args": n} for n in range(5)])).ids
    wanted = [jobs[3], 404, jobs[0], jobs[3]]
    answers = await rig.engine.jobs.cancel(wanted)
    assert [(a.id, a.state) for a in answers] == [
        (jobs[3], "canceled"), (404, None), (jobs[0], "canceled"), (jobs[3], "canceled"),
    ]  # fmt: skip
    assert await rig.states(*jobs) == ["canceled", "queued", "queued", "canceled", "queued"]


async def test_a_cancel_aborts_what_depends_on_the_job(rig: Rig) -> None:
    first = await rig.submit()
    second = await rig.submit(after=(first,))
    third = await rig.submit(after=(second,))
    await rig.engine.jobs.cancel([first])
    assert await rig.states(first, second, third) == ["canceled", "aborted", "aborted"]


async def test_many_jobs_are_canceled_in_pages_and_none_aborts_another(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "PAGE", 2)
    chain = [await rig.submit()]
    for _ in range(6):
        chain.append(await rig.submit(after=(chain[-1],)))
    wanted = [*chain, chain[0], 404]
    answers = await rig.engine.jobs.cancel(wanted, reason="not needed", actor="ann")
    assert [(a.id, a.state) for a in answers] == [
        (job, None if job == 404 else "canceled") for job in wanted
    ]
    assert await rig.states(*chain) == ["canceled"] * 7


async def test_a_cancel_is_logged_with_reason_and_actor(rig: Rig) -> None:
    job = await rig.submit()
    await cancel(rig, job)
    event = (await rig.events(job))[-1]
    assert (event.reason, event.actor) == ("not needed", "ann")
    assert (await rig.record(job)).reason == "not needed"


async def test_no_attempt_starts_after_a_cancel_was_answered(rig: Rig) -> None:
    jobs = [await rig.submit(args=n) for n in range(3)]
    await rig.engine.jobs.cancel(jobs)
    agent = await rig.agent()
    await rig.scheduling()
    await rig.cleanup()
    assert await agent.take(3) == ()

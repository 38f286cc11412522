"""`start_before` and `finish_before`: late jobs are canceled, or time out and have failed."""

import asyncio
from typing import Any

import pytest

from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.values.errors import InvalidInput
from windlass.engine.jobs.deadlines import SLACK_MS

START = "deadline: start_before has passed"
FINISH = "deadline: finish_before has passed"


async def end_of(rig: Rig, job: int) -> tuple[str | None, str | None]:
    return await rig.state(job), (await rig.record(job)).reason


async def test_a_job_that_has_not_started_in_time_is_canceled(rig: Rig) -> None:
    late = await rig.submit(start_before=rig.now + MINUTE)
    other = await rig.submit(start_before=rig.now + HOUR)
    await rig.advance(MINUTE - 1)
    await rig.cleanup()
    assert await rig.state(late) == "queued"
    await rig.advance(1)
    await rig.cleanup()
    assert await end_of(rig, late) == ("canceled", START)
    assert await rig.state(other) == "queued"
    assert [job.job for job in await (await rig.agent()).take(5)] == [other]


async def test_blocked_and_planned_jobs_are_canceled_too(rig: Rig) -> None:
    first = await rig.submit()
    blocked = await rig.submit(after=(first,), start_before=rig.now + MINUTE)
    behind = await rig.submit(after=(blocked,))
    planned = await rig.submit(
        not_before=rig.now + 30 * SECOND, start_before=rig.now + MINUTE, unblock="manual"
    )
    await rig.advance(MINUTE)
    await rig.cleanup()
    await rig.engine.settled()
    assert await rig.states(blocked, planned, behind) == ["canceled", "canceled", "aborted"]
    assert await rig.state(first) == "queued"


async def test_a_job_that_runs_has_started_in_time(rig: Rig) -> None:
    job = await rig.submit(start_before=rig.now + MINUTE, timeout_ms=HOUR)
    agent = await rig.agent()
    taken = await agent.take_one()
    await rig.advance(MINUTE)
    await rig.cleanup()
    assert await rig.state(job) == "running"
    await agent.fail(taken, FailureClass.NETWORK)
    await rig.advance(MINUTE)
    await rig.cleanup()
    assert await rig.state(job) == "queued"
    assert (await rig.snapshot()).deadlines == ()


async def test_an_assigned_job_is_taken_back_when_it_is_late(rig: Rig) -> None:
    job = await rig.submit(start_before=rig.now + MINUTE)
    agent = await rig.agent()
    taken = await agent.take_one(prefetch=True)
    await rig.advance(MINUTE)
    await rig.cleanup()
    assert await end_of(rig, job) == ("canceled", START)
    reply = await agent.start(taken)
    assert [refusal.job for refusal in reply.lost] == [job]


async def test_a_running_job_past_its_end_times_out_and_has_failed(rig: Rig) -> None:
    job = await rig.submit(finish_before=rig.now + MINUTE, timeout_ms=HOUR, retries=5)
    agent = await rig.agent()
    taken = await agent.take_one()
    await rig.advance(MINUTE)
    await rig.cleanup()
    assert await rig.state(job) == "timed_out"
    reply = await agent.sync()
    assert [(stop.job, stop.reason) for stop in reply.cancel] == [(job, FINISH)]
    await agent.finish(taken, "timed_out", message="stopped")
    assert (await rig.moves(job))[-2:] == [("running", "timed_out"), ("timed_out", "failed")]
    assert FINISH in ((await rig.record(job)).reason or "")


async def test_the_agent_is_told_to_stop_soon_after_the_end(rig: Rig) -> None:
    end = rig.now + MINUTE
    await rig.submit_all(
        {"finish_before": end, "timeout_ms": HOUR},
        {"finish_before": end, "timeout_ms": SECOND},
        {"finish_before": end, "idle_timeout_ms": HOUR, "queue": "live"},
        {"args": {"finish_before": 1}, "timeout_ms": HOUR},
    )
    await rig.advance(10 * SECOND)
    taken = sorted(await (await rig.agent()).take(4), key=lambda job: job.job)
    left = 50 * SECOND + SLACK_MS
    assert [job.timeout_ms for job in taken] == [left, SECOND, left, HOUR]


async def test_a_failure_after_the_end_is_not_retried(rig: Rig) -> None:
    job = await rig.submit(finish_before=rig.now + MINUTE, timeout_ms=HOUR, retries=5)
    agent = await rig.agent()
    taken = await agent.take_one()
    await rig.advance(MINUTE)
    await agent.fail(taken, FailureClass.NETWORK, "gone")
    assert await rig.state(job) == "failed"
    assert FINISH in ((await rig.record(job)).reason or "")


async def test_what_waits_past_its_end_is_canceled(rig: Rig) -> None:
    waiting = await rig.submit(finish_before=rig.now + MINUTE)
    assigned = await rig.submit(finish_before=rig.now + MINUTE, priority=5)
    agent = await rig.agent()
    assert (await agent.take_one(prefetch=True)).job == assigned
    await rig.advance(MINUTE)
    await rig.cleanup()
    assert await end_of(rig, waiting) == ("canceled", FINISH)
    assert await rig.moves(assigned) == [
        (None, "queued"), ("queued", "assigned"), ("assigned", "timed_out"), ("timed_out", "failed")
    ]  # fmt: skip


async def test_what_backs_off_past_its_end_fails(rig: Rig) -> None:
    job = await rig.submit(finish_before=rig.now + 2 * SECOND, retries=5)
    agent = await rig.agent()
    await agent.fail(await agent.take_one(), FailureClass.NETWORK, "gone")
    await rig.advance(2 * SECOND)
    await rig.cleanup()
    assert await end_of(rig, job) == ("failed", FINISH)
    assert (await rig.record(job)).failure == FailureClass.TIMEOUT.code


async def test_the_alarm_rings_at_a_deadline(memory_rig: Rig) -> None:
    rig = memory_rig
    job = await rig.submit(start_before=rig.now + 20)
    await rig.advance(20)
    ended = asyncio.ensure_future(rig.engine.jobs.wait_ended(job, 30_000))
    assert await ended
    assert await rig.state(job) == "canceled"


async def test_an_engine_that_starts_finds_what_was_due(rig: Rig) -> None:
    job = await rig.submit(start_before=rig.now + MINUTE)
    await rig.advance(HOUR)
    await rig.restart()
    assert await rig.engine.jobs.wait_ended(job, 30_000)


async def test_a_retry_by_hand_drops_deadlines_that_have_passed(rig: Rig) -> None:
    soon, later = rig.now + MINUTE, rig.now + HOUR
    job = await rig.submit(start_before=soon, finish_before=later)
    await rig.advance(MINUTE)
    await rig.cleanup()
    again = (await rig.engine.jobs.retry(job)).id
    await rig.cleanup()
    assert await rig.state(again) == "queued"
    assert (later, again) in (await rig.snapshot()).deadlines
    await rig.advance(HOUR)
    await rig.cleanup()
    assert await end_of(rig, again) == ("canceled", FINISH)


async def test_a_job_that_could_only_be_late_is_refused(memory_rig: Rig) -> None:
    rig = memory_rig
    late: tuple[dict[str, Any], ...] = (
        {"not_before": 200, "start_before": 100},
        {"start_before": 200, "finish_before": 200},
        {"not_before": 200, "finish_before": 100},
    )
    for fields in late:
        with pytest.raises(InvalidInput, match="a time after"):
            await rig.submit(**fields)

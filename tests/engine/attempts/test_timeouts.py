"""Attempts that take too long: assigned, running, or without a sign of life."""

import json
from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.lifecycle.failures import FailureClass
from windlass.messages.workers import QueueLimits

BACKSTOP = 10 * SECOND + 30 * SECOND  # the grace of a process, and one heartbeat


async def alive(rig: Rig, agent: Agent, ms: int) -> None:
    """Let time pass while the worker keeps its heartbeat and the health loop runs."""
    end = rig.now + ms
    while rig.now < end:
        await rig.advance(min(15 * SECOND, end - rig.now))
        await agent.sync()
        await rig.health()


async def settled_agent(rig: Rig) -> Agent:
    """A worker on an installation whose first grace is over."""
    agent = await rig.agent()
    await rig.health()
    await alive(rig, agent, 90 * SECOND)
    return agent


async def test_an_attempt_that_never_starts_is_taken_back_after_five_minutes(rig: Rig) -> None:
    agent = await settled_agent(rig)
    job = await rig.submit()
    await agent.take_one(prefetch=True)
    await alive(rig, agent, 5 * MINUTE - 1)
    assert await rig.state(job) == "assigned"
    await rig.advance(1)
    assert (await rig.health()).timed_out == 1
    assert (await rig.moves(job))[-2:] == [("assigned", "timed_out"), ("timed_out", "retrying")]


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"timeout": "none"}, None),
        ({"timeout": "none", "task": "ffmpeg", "duration_ms": MINUTE}, None),
        ({"queue": "archive"}, None),
        ({"queue": "archive", "timeout_ms": MINUTE}, MINUTE),
        ({"queue": "batch"}, 120 * MINUTE),
        ({"queue": "batch", "task": "gstreamer", "duration_ms": MINUTE}, 90 * SECOND),
        ({"queue": "other"}, 30 * MINUTE),
    ],
)
async def test_a_timeout_is_that_of_the_job_its_media_or_its_queue(
    memory_rig: Rig, fields: dict[str, Any], limit: int | None
) -> None:
    rig = memory_rig
    agent = await settled_agent(rig)
    await rig.submit(**{"task": "shell", **fields}, not_before=rig.now + 9 * HOUR)
    await rig.engine.queues.set_limits("archive", QueueLimits(timeout="none"))
    await rig.engine.queues.set_limits("batch", QueueLimits(timeout="2h"))
    job = await rig.submit(**{"task": "shell", **fields})
    assert (await agent.take_one()).timeout_ms == limit
    await alive(rig, agent, 3 * HOUR)
    assert await rig.state(job) == ("running" if limit is None else "timed_out")


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({}, 30 * MINUTE),
        ({"timeout_ms": 7 * SECOND}, 7 * SECOND),
        ({"task": "ffmpeg", "duration_ms": MINUTE}, 2 * MINUTE),
        ({"task": "gstreamer", "duration_ms": MINUTE}, 90 * SECOND),
    ],
)
async def test_the_server_steps_in_a_little_after_the_agent_should_have(
    memory_rig: Rig, fields: dict[str, Any], limit: int
) -> None:
    rig = memory_rig
    agent = await settled_agent(rig)
    job = await rig.submit(**{"task": "shell", **fields})
    given = await agent.take_one()
    assert given.timeout_ms == limit
    await alive(rig, agent, limit + BACKSTOP - 1)
    assert await rig.state(job) == "running"
    await rig.advance(1)
    assert (await rig.health()).timed_out == 1
    assert await rig.state(job) == "timed_out"


async def test_a_timed_out_job_keeps_its_lease_until_the_agent_reports(rig: Rig) -> None:
    agent = await settled_agent(rig)
    job = await rig.submit(timeout_ms=SECOND)
    given = await agent.take_one()
    await alive(rig, agent, MINUTE)
    reply = await agent.sync()
    assert [(stop.job, stop.reason) for stop in reply.cancel] == [(job, "Timed out")]
    assert len((await rig.snapshot()).leases) == 1
    await agent.finish(given, "canceled")  # it did as it was told
    assert await rig.state(job) == "failed"


@pytest.mark.parametrize("outcome", ["timed_out", "failed", "canceled", "completed"])
async def test_whatever_a_timed_out_process_says_it_has_timed_out(rig: Rig, outcome: str) -> None:
    agent = await settled_agent(rig)
    job = await rig.submit(timeout_ms=SECOND)
    given = await agent.take_one()
    await alive(rig, agent, MINUTE)
    await agent.finish(given, outcome)  # type: ignore[arg-type]
    assert await rig.state(job) == "failed"
    assert (await rig.record(job)).failure == FailureClass.TIMEOUT.code


async def test_a_timeout_is_retried_only_when_that_was_asked_for(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit(timeout_ms=SECOND)
    await agent.finish(await agent.take_one(), "timed_out")
    assert (await rig.moves(job))[-2:] == [("running", "timed_out"), ("timed_out", "failed")]
    reason = "Timed out: timeout failures are not retried without `retries` or `retry_on`"
    assert (await rig.record(job)).reason == reason


@pytest.mark.parametrize("asked", [{"retries": 1}, {"retry_on": ("timeout",)}])
async def test_a_timeout_reported_by_the_agent_is_a_transition_and_a_retry(
    rig: Rig, asked: dict[str, Any]
) -> None:
    agent = await rig.agent()
    job = await rig.submit(timeout_ms=SECOND, **asked)
    await agent.finish(await agent.take_one(), "timed_out")
    assert (await rig.moves(job))[-2:] == [("running", "timed_out"), ("timed_out", "retrying")]
    assert (await rig.record(job)).facts.failed == 1


async def test_a_timed_out_job_whose_worker_is_lost_goes_on(rig: Rig) -> None:
    agent = await settled_agent(rig)
    job = await rig.submit(timeout_ms=SECOND)
    await agent.take_one()
    await alive(rig, agent, MINUTE)
    await rig.pass_time(2 * MINUTE)
    assert await rig.state(job) == "retrying"


async def test_live_jobs_time_out_on_inactivity_only(rig: Rig) -> None:
    agent = await settled_agent(rig)
    job = await rig.submit(queue="live")
    given = await agent.take_one()
    assert (given.timeout_ms, given.idle_timeout_ms) == (None, 5 * MINUTE)
    for _ in range(3):  # twelve minutes, and never five without a sign
        await alive(rig, agent, 4 * MINUTE)
        assert await agent.show_activity(given)
    assert await rig.state(job) == "running"
    await alive(rig, agent, 5 * MINUTE + BACKSTOP - 1)
    assert await rig.state(job) == "running"
    await rig.advance(1)
    await rig.health()
    assert await rig.state(job) == "timed_out"


async def test_until_there_is_activity_the_start_stands_for_it(rig: Rig) -> None:
    agent = await settled_agent(rig)
    job = await rig.submit(queue="live")
    await agent.take_one()
    started = rig.now
    await alive(rig, agent, 5 * MINUTE + BACKSTOP)
    (event,) = [e for e in await rig.events(job) if e.to == 6]
    assert json.loads(event.data or "") == {"last_activity": started}


async def test_the_last_activity_is_told(rig: Rig) -> None:
    agent = await settled_agent(rig)
    job = await rig.submit(queue="live")
    given = await agent.take_one()
    await alive(rig, agent, MINUTE)
    await agent.show_activity(given)
    active = rig.now
    await alive(rig, agent, 5 * MINUTE + BACKSTOP)
    (event,) = [e for e in await rig.events(job) if e.to == 6]
    assert json.loads(event.data or "") == {"last_activity": active}


async def test_activity_does_not_lengthen_a_limit_on_run_time(rig: Rig) -> None:
    agent = await settled_agent(rig)
    job = await rig.submit(timeout_ms=MINUTE, idle_timeout_ms=HOUR)
    given = await agent.take_one()
    for _ in range(4):
        await alive(rig, agent, 20 * SECOND)
        await agent.show_activity(given)
    await alive(rig, agent, 20 * SECOND)
    assert await rig.state(job) == "timed_out"


async def test_timeouts_exhaust_the_retries_like_any_failure(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit(retries=1)
    await agent.finish(await agent.take_one(), "timed_out")
    await rig.advance(MINUTE)
    await agent.finish(await agent.take_one(), "timed_out")
    assert (await rig.moves(job))[-2:] == [("running", "timed_out"), ("timed_out", "failed")]


async def test_after_an_outage_no_deadline_ends_before_the_agents_were_heard(rig: Rig) -> None:
    agent = await settled_agent(rig)
    job = await rig.submit(timeout_ms=MINUTE)
    given = await agent.take_one()
    await rig.advance(HOUR)  # no server ran
    report = await rig.health()
    assert (report.timed_out, report.in_grace) == (0, True)
    await agent.finish(given)
    assert await rig.state(job) == "completed"

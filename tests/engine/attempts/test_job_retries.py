"""A job's own rules for retries, end to end: how often, after what, and how long it waits."""

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.job.forms import Backoff
from windlass.domain.lifecycle.failures import FailureClass, Raised

VALUE_ERROR = Raised(("ValueError", "Exception", "BaseException"))


async def fails(
    rig: Rig, agent: Agent, failure: FailureClass, raised: Raised | None = None
) -> str | None:
    """Fails the next job and returns its state."""
    given = await agent.take_one()
    await agent.fail(given, failure, "it broke", raised)
    return await rig.state(given.job)


@pytest.mark.parametrize(
    "failure", [FailureClass.EXECUTION, FailureClass.CONFIGURATION, FailureClass.TIMEOUT]
)
async def test_retries_are_more_tries_after_any_failure(rig: Rig, failure: FailureClass) -> None:
    job = await rig.submit(retries=2)
    agent = await rig.agent()
    for _ in range(2):
        assert await fails(rig, agent, failure) == "retrying"
        await rig.advance(5 * MINUTE)
    assert await fails(rig, agent, failure) == "failed"
    assert (await rig.record(job)).reason == "it broke: retries exhausted (2 of 2)"


@pytest.mark.parametrize(
    ("retries", "retry_on", "most"),
    [(5, (), 5), (5, ("worker_lost",), 5), (5, ("network",), 3), (1, (), 3)],
)
async def test_lost_processes_are_retried_as_often_as_asked_and_at_least_as_often_as_without(
    memory_rig: Rig, retries: int, retry_on: tuple[str, ...], most: int
) -> None:
    rig = memory_rig
    job = await rig.submit(retries=retries, retry_on=retry_on)
    agent = await rig.agent()
    for _ in range(most):
        assert await fails(rig, agent, FailureClass.WORKER_LOST) == "retrying"
        await rig.advance(5 * MINUTE)
    assert await fails(rig, agent, FailureClass.WORKER_LOST) == "failed"
    assert str((await rig.record(job)).reason).endswith(f"exhausted ({most} of {most})")


async def test_retry_on_narrows_and_no_retry_on_forbids(memory_rig: Rig) -> None:
    rig = memory_rig
    agent = await rig.agent()
    work = FailureClass.EXECUTION
    await rig.submit(task="python", retries=3, retry_on=("ValueError",))
    assert await fails(rig, agent, work, VALUE_ERROR) == "retrying"
    await rig.advance(MINUTE)
    assert await fails(rig, agent, work, Raised(("KeyError",))) == "failed"
    job = await rig.submit(task="python", retries=3, no_retry_on=("ValueError",))
    assert await fails(rig, agent, work, VALUE_ERROR) == "failed"
    assert (await rig.record(job)).reason == "it broke: not retried after ValueError (no_retry_on)"


async def test_a_job_that_must_not_run_twice_ends_with_its_worker(memory_rig: Rig) -> None:
    job = await memory_rig.submit(no_retry_on=("worker_lost",))
    agent = await memory_rig.agent()
    await agent.take_one()
    await memory_rig.pass_time(3 * MINUTE)
    assert await memory_rig.state(job) == "failed"
    assert "not retried after worker_lost" in str((await memory_rig.record(job)).reason)


async def test_a_job_waits_as_its_own_backoff_says(rig: Rig) -> None:
    backoff = Backoff(initial=1.0, factor=3.0, max=5.0)
    await rig.submit(retries=9, backoff=backoff)
    agent = await rig.agent()
    for wait in (1, 3, 5, 5):
        assert await fails(rig, agent, FailureClass.EXECUTION) == "retrying"
        await rig.advance(wait * SECOND - 1)
        assert await agent.take() == ()
        await rig.advance(1)


async def test_a_task_that_asks_for_a_retry_gets_it_when_it_says(rig: Rig) -> None:
    job = await rig.submit(task="python")
    agent = await rig.agent()
    asks = Raised(("windlass.tasks.exceptions.Retry",), "retry", 90_000)
    for _ in range(3):
        assert await fails(rig, agent, FailureClass.EXECUTION, asks) == "retrying"
        await rig.advance(90 * SECOND - 1)
        assert await agent.take() == ()
        await rig.advance(1)
    assert await fails(rig, agent, FailureClass.EXECUTION, asks) == "failed"
    assert (await rig.record(job)).reason == "it broke: retries exhausted (3 of 3)"
    assert [a.message for a in (await rig.snapshot()).attempts] == ["it broke"] * 3


async def test_a_task_that_aborts_is_not_retried(memory_rig: Rig) -> None:
    job = await memory_rig.submit(task="python", retries=5, retry_on=("execution",))
    agent = await memory_rig.agent()
    aborts = Raised((), "abort")
    assert await fails(memory_rig, agent, FailureClass.EXECUTION, aborts) == "failed"
    reason = "it broke: not retried, as its task raised windlass.Abort"
    assert (await memory_rig.record(job)).reason == reason

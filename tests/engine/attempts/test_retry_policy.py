"""What follows a failure, end to end: the class decides, the counters bound it."""

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.retries import RetryPolicy

RETRIED = [FailureClass.NETWORK, FailureClass.RESOURCE]
FINAL = [FailureClass.EXECUTION, FailureClass.CONFIGURATION, FailureClass.TIMEOUT]
UNASKED = "failures are not retried without `retries` or `retry_on`"


async def fail(rig: Rig, agent: Agent, failure: FailureClass, times: int = 1) -> None:
    """Fail the next job so often, waiting out every backoff."""
    for _ in range(times):
        await agent.fail(await agent.take_one(), failure)
        await rig.advance(5 * MINUTE)


@pytest.mark.parametrize("failure", RETRIED)
async def test_failures_of_the_machinery_are_retried(rig: Rig, failure: FailureClass) -> None:
    job = await rig.submit()
    await fail(rig, await rig.agent(), failure)
    assert await rig.state(job) == "retrying"
    assert (await rig.record(job)).facts.failed == 1


@pytest.mark.parametrize("failure", FINAL)
async def test_failures_of_the_work_are_final(rig: Rig, failure: FailureClass) -> None:
    job = await rig.submit()
    await fail(rig, await rig.agent(), failure)
    assert await rig.state(job) == "failed"
    assert (await rig.record(job)).reason == f"{failure} {UNASKED}"


@pytest.mark.parametrize("failure", FINAL)
async def test_a_job_may_opt_in(rig: Rig, failure: FailureClass) -> None:
    job = await rig.submit(retry_on=(failure.value,))
    await fail(rig, await rig.agent(), failure)
    assert await rig.state(job) == "retrying"


async def test_a_failure_that_says_canceled_is_never_retried(rig: Rig) -> None:
    job = await rig.submit()
    await fail(rig, await rig.agent(), FailureClass.CANCELED)
    assert await rig.state(job) == "failed"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("dial tcp: Connection Refused", "retrying"),
        ("i/o TIMEOUT", "retrying"),
        ("temporary failure in name resolution", "retrying"),
        ("network error", "retrying"),
        ("no such host", "retrying"),
        ("write: broken pipe", "retrying"),
        ("connection reset by peer", "retrying"),
        ("node unavailable", "retrying"),
        ("worker died", "retrying"),
        ("stale file handle", "retrying"),
        ("Unknown encoder 'libx264'", "failed"),
        (None, "failed"),
    ],
)
async def test_without_a_class_the_text_decides(
    memory_rig: Rig, text: str | None, state: str
) -> None:
    job = await memory_rig.submit()
    agent = await memory_rig.agent()
    await agent.fail(await agent.take_one(), None, text)
    assert await memory_rig.state(job) == state


async def test_a_class_goes_before_the_text(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.fail(await agent.take_one(), FailureClass.EXECUTION, "connection refused")
    assert await rig.state(job) == "failed"


async def test_the_waits_are_5_10_20_seconds_and_then_it_fails(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    for wait in (5, 10, 20):
        await agent.fail(await agent.take_one(), FailureClass.NETWORK)
        await rig.advance(wait * SECOND - 1)
        assert await agent.take() == ()
        await rig.advance(1)
    await agent.fail(await agent.take_one(), FailureClass.NETWORK)
    assert await rig.state(job) == "failed"
    assert (await rig.record(job)).reason == "retries exhausted (3 of 3)"
    assert (await rig.record(job)).facts.attempt == 4


async def test_no_wait_is_longer_than_five_minutes(rig: Rig) -> None:
    await rig.submit(retries=50)
    agent = await rig.agent()
    await fail(rig, agent, FailureClass.NETWORK, times=12)
    assert len(await agent.take()) == 1


@pytest.mark.parametrize("retries", [0, 1, 5])
async def test_a_jobs_own_number_of_retries_goes_first(rig: Rig, retries: int) -> None:
    job = await rig.submit(retries=retries)
    agent = await rig.agent()
    await fail(rig, agent, FailureClass.NETWORK, times=retries)
    assert await rig.state(job) == ("queued" if retries == 0 else "retrying")
    await fail(rig, agent, FailureClass.NETWORK)
    assert await rig.state(job) == "failed"


async def test_lost_and_failed_attempts_count_apart(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await fail(rig, agent, FailureClass.NETWORK, times=3)
    await fail(rig, agent, FailureClass.WORKER_LOST, times=3)
    facts = (await rig.record(job)).facts
    assert (facts.failed, facts.lost) == (3, 3)
    assert await rig.state(job) == "retrying"


async def test_lost_attempts_have_their_own_limit(rig: Rig) -> None:
    job = await rig.submit(retries=1)
    agent = await rig.agent()
    await fail(rig, agent, FailureClass.EXECUTION)
    await fail(rig, agent, FailureClass.WORKER_LOST, times=4)
    assert await rig.state(job) == "failed"
    assert (await rig.record(job)).reason == "retries after lost workers exhausted (3 of 3)"


async def test_a_job_lost_three_times_on_two_workers_is_poison(rig: Rig) -> None:
    job = await rig.submit()
    one, two = await rig.agent("one"), await rig.agent("two")
    await fail(rig, one, FailureClass.WORKER_LOST, times=2)
    assert await rig.state(job) == "retrying"
    await fail(rig, two, FailureClass.WORKER_LOST)
    assert await rig.state(job) == "failed"
    record = await rig.record(job)
    assert record.reason == "poison: lost 3 attempts on 2 workers"
    assert record.facts.flags & 2


async def test_three_losses_on_one_worker_are_not_poison(rig: Rig) -> None:
    job = await rig.submit()
    await fail(rig, await rig.agent(), FailureClass.WORKER_LOST, times=3)
    assert await rig.state(job) == "retrying"
    assert not (await rig.record(job)).facts.flags


async def test_quarantine_can_be_turned_off(rig: Rig) -> None:
    await rig.restart(Config(retry=RetryPolicy(poison_losses=0, max_lost=9)))
    job = await rig.submit()
    for name in ("one", "two", "three", "four"):
        await fail(rig, await rig.agent(name), FailureClass.WORKER_LOST)
    assert await rig.state(job) == "retrying"


async def test_every_attempt_is_kept_with_its_reason(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    for text in ("broken pipe", "no such host"):
        await agent.fail(await agent.take_one(), FailureClass.NETWORK, text)
        await rig.advance(MINUTE)
    attempts = (await rig.snapshot()).attempts
    assert [(a.job, a.number, a.message, a.worker) for a in attempts] == [
        (job, 1, "broken pipe", agent.id),
        (job, 2, "no such host", agent.id),
    ]


async def test_a_failed_job_keeps_class_code_and_message(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.finish(given, "failed", failure="execution", message="exit 3", exit_code=3)
    record = await rig.record(job)
    assert (record.failure, record.exit_code, record.message) == (1, 3, "exit 3")
    assert record.reason == f"exit 3: execution {UNASKED}"


async def test_jitter_only_shortens_a_wait(rig: Rig) -> None:
    await rig.restart(Config(retry=RetryPolicy(jitter=1.0)), chance=HalfChance())
    await rig.submit()
    agent = await rig.agent()
    await agent.fail(await agent.take_one(), FailureClass.NETWORK)
    await rig.advance(2_499)
    assert await agent.take() == ()
    await rig.advance(1)
    assert len(await agent.take()) == 1


class HalfChance:
    def fraction(self) -> float:
        return 0.5

"""Where a job's time went, told from the log."""

import pytest

from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.job.forms import Concurrency
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.matching.shapes import Rate
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.values.errors import NotFound
from windlass.messages.workers import QueueLimits


async def parts(rig: Rig, job: int) -> dict[str, float]:
    """Seconds by cause, which add up to the job's whole time."""
    found = await rig.engine.explain.time_spent(job)
    assert sum(part.seconds for part in found.parts) == pytest.approx(found.total)
    record = await rig.record(job)
    end = record.finished_at or rig.now
    assert found.total == (end - record.facts.created_at) / 1000
    return {part.cause: part.seconds for part in found.parts}


async def test_a_job_whose_workers_are_busy(rig: Rig) -> None:
    agent = await rig.agent(slots=1)
    await rig.submit()
    first = await agent.take_one()
    job = await rig.submit()
    await rig.advance(10 * SECOND)
    await agent.finish(first)
    mine = await agent.take_one()
    await rig.advance(3 * SECOND)
    assert await parts(rig, job) == {"busy": 10, "running": 3}
    await agent.finish(mine)
    await rig.advance(MINUTE)
    assert await parts(rig, job) == {"busy": 10, "running": 3}


async def test_each_segment_with_a_worker_names_its_attempt(rig: Rig) -> None:
    agent = await rig.agent(slots=1)
    job = await rig.submit(retries=1)
    await rig.advance(2 * SECOND)
    first = await agent.take_one()
    await rig.advance(3 * SECOND)
    await agent.fail(first, FailureClass.NETWORK)
    await rig.advance(10 * MINUTE)
    await rig.engine.due_jobs.move()
    await agent.take_one()
    await rig.advance(4 * SECOND)
    found = (await rig.engine.explain.time_spent(job)).segments
    assert [(one.cause, one.attempt) for one in found if one.cause != "busy"] == [
        ("running", 1), ("backoff", None), ("running", 2)
    ]  # fmt: skip
    assert found[-1].seconds == 4


async def test_a_fleet_without_a_capable_worker(rig: Rig) -> None:
    plain = await rig.agent("plain")
    job = await rig.submit(requires=("zone==eu",))
    await rig.advance(5 * SECOND)
    await rig.engine.workers.set_metadata(plain.id, {"zone": "eu"})
    await rig.advance(2 * SECOND)
    await rig.engine.workers.set_status(plain.id, WorkerStatus.DISABLED)
    await rig.advance(4 * SECOND)
    late = await rig.agent("late", metadata={"zone": "eu"})
    await rig.advance(1 * SECOND)
    await late.take_one()
    assert await parts(rig, job) == {"no_worker": 9, "busy": 3}


async def test_a_paused_queue(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.engine.queues.pause("batch")
    job = await rig.submit(queue="batch")
    await rig.advance(7 * SECOND)
    await rig.engine.queues.resume("batch")
    await rig.advance(1 * SECOND)
    await agent.take_one()
    assert await parts(rig, job) == {"paused": 7, "busy": 1}


async def test_backoff_and_planned_times(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit(not_before=rig.now + 20 * SECOND)
    await rig.advance(20 * SECOND)
    await rig.engine.due_jobs.move()
    await agent.fail(await agent.take_one(), FailureClass.NETWORK)
    await rig.advance(5 * SECOND)
    await rig.engine.due_jobs.move()
    await rig.advance(2 * SECOND)
    assert await parts(rig, job) == {"not_before": 20, "backoff": 5, "busy": 2}


async def test_a_hand_back_pauses_the_job_while_it_is_queued(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit()
    taken = await agent.take_one(prefetch=True)
    await rig.advance(1 * SECOND)
    await agent.release(taken, "no disk")
    await rig.advance(MINUTE)
    found = await parts(rig, job)
    assert found["assigned"] == 1
    assert found["backoff"] > 0
    assert found["backoff"] + found["busy"] == 60


async def test_dependencies_and_operators(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    job = await rig.submit(after=(first,), unblock="manual")
    await rig.advance(6 * SECOND)
    await agent.finish(await agent.take_one())
    await rig.advance(4 * SECOND)
    await rig.engine.jobs.unblock(job)
    await agent.take_one()
    assert await parts(rig, job) == {"dependencies": 6, "operator": 4}


async def test_a_limit_that_was_used_up(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.submit(concurrency=Concurrency("one"))
    first = await agent.take_one()
    job = await rig.submit(concurrency=Concurrency("one"))
    await rig.advance(8 * SECOND)
    await agent.finish(first)
    await rig.advance(1 * SECOND)
    assert await parts(rig, job) == {"limits": 8, "busy": 1}
    mine = await agent.take_one()
    await rig.advance(2 * SECOND)
    assert await parts(rig, job) == {"limits": 8, "busy": 1, "running": 2}
    await agent.finish(mine)
    await rig.submit(concurrency=Concurrency("one"))
    await agent.take_one()
    assert await parts(rig, job) == {"limits": 8, "busy": 1, "running": 2}


async def test_a_full_queue(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.submit(queue="batch")
    first = await agent.take_one()
    job = await rig.submit(queue="batch")
    await rig.advance(2 * SECOND)
    await rig.engine.queues.set_limits("batch", QueueLimits(max_running=1))
    await rig.advance(5 * SECOND)
    await agent.finish(first)
    await rig.advance(1 * SECOND)
    assert await parts(rig, job) == {"busy": 3, "limits": 5}
    await agent.take_one()
    assert await parts(rig, job) == {"busy": 3, "limits": 5}


async def test_a_rate_that_was_used_up(rig: Rig) -> None:
    agent = await rig.agent()
    rate = Rate("api", 1, 10 * SECOND)
    await rig.submit(rate=rate)
    await agent.take_one()
    await rig.advance(4 * SECOND)
    job = await rig.submit(rate=rate)
    await rig.advance(9 * SECOND)
    assert await parts(rig, job) == {"limits": 6, "busy": 3}
    await agent.take_one()
    await rig.advance(MINUTE)
    assert await parts(rig, job) == {"limits": 6, "busy": 3, "running": 60}


async def test_metadata_that_an_agent_reports_later_counts_from_then(rig: Rig) -> None:
    agent = await rig.agent("w", metadata={})
    job = await rig.submit(requires=("ffmpeg:version matches >=5",))
    await rig.advance(3 * SECOND)
    await agent.sync(metadata={"ffmpeg:version": "6.1"})
    await rig.advance(4 * SECOND)
    await agent.take_one()
    assert await parts(rig, job) == {"no_worker": 3, "busy": 4}


async def test_jobs_that_are_not_there_are_refused(memory_rig: Rig) -> None:
    with pytest.raises(NotFound, match="job 5 does not exist"):
        await memory_rig.engine.explain.time_spent(5)

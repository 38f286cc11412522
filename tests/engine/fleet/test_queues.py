"""Pausing and resuming queues."""

from tests.engine.support.rig import Rig
from windlass.domain.rows.events import EventKind


async def test_a_paused_queue_gives_out_nothing(rig: Rig) -> None:
    job = await rig.submit(queue="batch")
    assert await rig.engine.queues.pause("batch", actor="ann")
    agent = await rig.agent()
    assert await agent.take() == ()
    assert await rig.state(job) == "queued"


async def test_other_queues_go_on(rig: Rig) -> None:
    await rig.submit(queue="live")
    other = await rig.submit(queue="batch")
    await rig.engine.queues.pause("live")
    assert [job.job for job in await (await rig.agent()).take(2)] == [other]


async def test_a_resumed_queue_gives_out_its_jobs(rig: Rig) -> None:
    job = await rig.submit(queue="batch")
    await rig.engine.queues.pause("batch")
    assert await rig.engine.queues.resume("batch")
    assert [j.job for j in await (await rig.agent()).take()] == [job]


async def test_running_jobs_of_a_paused_queue_finish(rig: Rig) -> None:
    job = await rig.submit(queue="batch")
    agent = await rig.agent()
    given = await agent.take_one()
    await rig.engine.queues.pause("batch")
    await agent.finish(given)
    assert await rig.state(job) == "completed"


async def test_pausing_twice_is_once(rig: Rig) -> None:
    await rig.engine.queues.pause("batch")
    assert not await rig.engine.queues.pause("batch")
    said = [e.reason for e in await rig.events() if e.kind == EventKind.QUEUE]
    assert said == ["Queue batch paused"]


async def test_resuming_what_was_never_paused_changes_nothing(rig: Rig) -> None:
    assert not await rig.engine.queues.resume("batch")
    assert await rig.events() == []


async def test_a_pause_outlives_the_engine(rig: Rig) -> None:
    await rig.submit(queue="batch")
    await rig.engine.queues.pause("batch")
    await rig.restart()
    assert await (await rig.agent()).take() == ()


async def test_a_queue_can_be_paused_before_its_first_job(rig: Rig) -> None:
    await rig.engine.queues.pause("nightly")
    await rig.submit(queue="nightly")
    assert await (await rig.agent()).take() == ()

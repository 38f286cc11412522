"""Seed 002's five idempotent operations, each called twice on every store."""

from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.lifecycle.failures import FailureClass


async def test_job_assignment_twice(rig: Rig) -> None:
    await rig.submit_all({"args": 1}, {"args": 2})
    agent = await rig.agent()
    request = agent.request(want=1)
    first = await agent.send(request)
    state, log = await rig.snapshot(), await rig.events()
    second = await agent.send(request)
    assert (first.applied, second.applied, second.jobs) == (True, False, ())
    assert (await rig.snapshot(), await rig.events()) == (state, log)


async def test_job_completion_twice(rig: Rig) -> None:
    await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.finish(given, result="done")
    state, log = await rig.snapshot(), await rig.events()
    second = await agent.finish(given, result="done again")
    assert second.lost == ()
    assert (await rig.snapshot())._replace(workers=()) == state._replace(workers=())
    assert await rig.events() == log


async def test_heartbeat_update_twice(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.advance(10 * SECOND)
    request = agent.request()
    await agent.send(request)
    state, log = await rig.snapshot(), await rig.events()
    await agent.send(request)
    assert (await rig.snapshot(), await rig.events()) == (state, log)
    assert (await rig.worker(agent.id)).last_seen == rig.now


async def test_job_activity_twice(rig: Rig) -> None:
    await rig.submit(queue="live")
    agent = await rig.agent()
    given = await agent.take_one()
    await rig.advance(MINUTE)
    assert await agent.show_activity(given)
    state = await rig.snapshot()
    assert await agent.show_activity(given)
    assert await rig.snapshot() == state


async def test_retry_scheduling_twice(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.fail(given, FailureClass.NETWORK)
    state, log = await rig.snapshot(), await rig.events()
    assert (await agent.fail(given, FailureClass.NETWORK)).lost == ()
    assert (await rig.snapshot())._replace(workers=()) == state._replace(workers=())
    assert await rig.events() == log
    await rig.advance(MINUTE)
    assert (await rig.cleanup()).promoted == 1
    assert (await rig.cleanup()).promoted == 0
    assert (await rig.record(job)).facts.failed == 1


async def test_retry_by_hand_twice(rig: Rig) -> None:
    job = await rig.submit()
    await rig.engine.jobs.cancel([job])
    first = await rig.engine.jobs.retry(job)
    state, log = await rig.snapshot(), await rig.events()
    second = await rig.engine.jobs.retry(job)
    assert (second.id, second.applied) == (first.id, False)
    assert (await rig.snapshot(), await rig.events()) == (state, log)


async def test_worker_registration_twice(rig: Rig) -> None:
    first = await rig.enrol("w", slots=1, metadata={"system:cpus": 1})
    second = await rig.enrol("w", slots=2, metadata={"system:cpus": 2})
    assert (first, second) == ((1, 1), (1, 2))
    (row,) = (await rig.snapshot()).workers
    assert (row.slots, row.dynamic, row.incarnation) == (2, '{"system:cpus":2}', 2)

"""The counters an operator reads."""

from tests.engine.support.rig import MINUTE, SECOND, Rig


async def test_queue_depth_counts_queued_jobs_by_queue(rig: Rig) -> None:
    for queue in ("live", "live", "batch"):
        await rig.submit(queue=queue)
    await rig.submit(queue="live", not_before=rig.now + MINUTE)
    await rig.submit(queue="live", unblock="manual")
    assert (await rig.engine.metrics()).queue_depth == {"live": 3, "batch": 1}
    await (await rig.agent()).take_one()
    assert (await rig.engine.metrics()).queue_depth == {"live": 2, "batch": 1}


async def test_queue_depth_outlives_the_engine(rig: Rig) -> None:
    await rig.submit()
    await rig.restart()
    assert (await rig.engine.metrics()).queue_depth == {"default": 1}


async def test_assignments_are_counted(rig: Rig) -> None:
    await rig.submit_all({"args": 1}, {"args": 2})
    await (await rig.agent()).take(5)
    metrics = await rig.engine.metrics()
    assert (metrics.assignment_attempts, metrics.assignment_successes) == (5, 2)
    assert metrics.assignment_failures == 0


async def test_assignments_that_come_to_nothing_are_failures(rig: Rig) -> None:
    agent = await rig.agent()
    for _ in range(3):
        await rig.submit()
    back, refused, unfit = await agent.take(3, prefetch=True)
    await agent.release(back)
    await agent.release(refused, "no disk")
    await agent.finish(unfit, "failed", failure="configuration", misfit=True)
    metrics = await rig.engine.metrics()
    assert (metrics.assignment_successes, metrics.assignment_failures) == (3, 3)


async def test_retries_and_timeouts_are_counted(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.submit(retries=2)
    await agent.finish(await agent.take_one(), "failed", failure="network")
    await rig.advance(MINUTE)
    await agent.finish(await agent.take_one(), "timed_out")
    metrics = await rig.engine.metrics()
    assert (metrics.retries, metrics.timeouts) == (2, 1)


async def test_orphans_and_worker_failures_are_counted(rig: Rig) -> None:
    await rig.end_grace()
    for n in range(2):
        await rig.submit(args=n)
    await (await rig.agent()).take(2)
    await rig.pass_time(100 * SECOND)
    metrics = await rig.engine.metrics()
    assert (metrics.orphans, metrics.worker_failures) == (2, 1)
    assert metrics.worker_failure_rate == 0.5


async def test_attempts_that_a_restart_ended_count_as_orphans(rig: Rig) -> None:
    """A worker that crashes again and again is back before anybody misses its heartbeat."""
    await rig.end_grace()
    for n in range(3):
        await rig.submit(args=n)
    agent = await rig.agent(slots=3)
    for given in (await agent.take(3, prefetch=True))[:2]:
        await agent.start(given)
    await agent.enrol(slots=3, takeover=True)
    assert (await rig.engine.metrics()).orphans == 2

"""`explain` beside limits of queues, rates, and what workers have in use."""

from tests.engine.explain.test_explain_job import actions, kinds
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.job.forms import NEVER
from windlass.domain.matching.shapes import Rate
from windlass.engine.loops.statistics import StatisticsLoop
from windlass.messages.workers import QueueLimits

GIB = 1024**3


async def test_resources_in_use_are_told_as_the_claim_counts_them(rig: Rig) -> None:
    agent = await rig.agent("w", metadata={"system:memory": 8 * GIB})
    await rig.submit(resources={"memory": "6GiB"})
    await agent.take_one()
    job = await rig.submit(resources={"memory": "4GiB"})
    found = await rig.engine.explain.job(job)
    assert kinds(found) == ["busy"]
    assert found.workers[0].text == "worker w: needs memory 4 GiB, has 2 GiB of 8 GiB free"
    assert not await agent.take()
    idle = await rig.engine.explain.worker(agent.id)
    assert idle.work[0].text == (
        "1 job of shell in queue default: needs memory 4 GiB, has 2 GiB of 8 GiB free"
    )


async def test_a_job_to_be_kept_apart_waits_for_another_worker(rig: Rig) -> None:
    agent = await rig.agent("w")
    await rig.submit(apart="db")
    await agent.take_one()
    job = await rig.submit(apart="db")
    found = await rig.engine.explain.job(job)
    assert found.workers[0].clause == "apart=db"
    assert actions(found) == ["add_worker"]
    other = await rig.agent("other")
    assert [one.worker for one in (await rig.engine.explain.job(job)).workers if one.runnable] == [
        "other"
    ]
    assert [taken.job for taken in await other.take()] == [job]


async def test_the_limit_of_its_queue_and_the_way_out(rig: Rig) -> None:
    agent = await rig.agent("w")
    await rig.engine.queues.set_limits("batch", QueueLimits(max_running=1))
    await rig.submit(queue="batch")
    await agent.take_one()
    job = await rig.submit(queue="batch")
    found = await rig.engine.explain.job(job)
    assert kinds(found) == ["queue_limit"]
    assert found.limits[0].text == "queue batch (1 of 1 in use)"
    assert actions(found) == ["raise_queue_limit"]
    idle = await rig.engine.explain.worker(agent.id)
    assert "queue batch (1 of 1 in use)" in idle.work[0].text
    await rig.engine.queues.set_limits("batch", QueueLimits(max_running=2))
    assert (await rig.engine.explain.job(job)).waiting_for == ()
    assert [taken.job for taken in await agent.take()] == [job]


async def test_jobs_of_a_queue_on_one_worker(rig: Rig) -> None:
    agent = await rig.agent("w")
    await rig.engine.queues.set_limits("batch", QueueLimits(max_per_worker=1))
    await rig.submit(queue="batch")
    await agent.take_one()
    job = await rig.submit(queue="batch")
    found = await rig.engine.explain.job(job)
    assert found.workers[0].text == (
        "worker w: holds 1 job of queue batch, the most for one worker"
    )


async def test_a_rate_tells_when_the_next_may_start(rig: Rig) -> None:
    agent = await rig.agent("w")
    rate = Rate("api", 1, MINUTE)
    await rig.submit(rate=rate)
    await agent.take_one()
    job = await rig.submit(rate=rate)
    await rig.advance(20 * SECOND)
    found = await rig.engine.explain.job(job)
    assert kinds(found) == ["rate"]
    assert found.waiting_for[0].text == "the rate api, 1 in 1 min: the next job may start in 40 s"
    await rig.advance(40 * SECOND)
    assert (await rig.engine.explain.job(job)).waiting_for == ()
    assert [taken.job for taken in await agent.take()] == [job]


async def test_deadlines_are_told_with_what_is_left(rig: Rig) -> None:
    await rig.agent("w", slots=1)
    job = await rig.submit(
        start_before=rig.now + 5 * MINUTE, finish_before=rig.now + 10 * MINUTE, queue="batch"
    )
    await rig.advance(MINUTE)
    first, second = (await rig.engine.explain.job(job)).notes
    assert first.startswith("it is canceled unless it starts before ")
    assert first.endswith(", 4 min from now")
    assert second.startswith("it is canceled unless it ends before ")


async def test_what_nobody_could_ever_run_is_told_to_be_rejected(rig: Rig) -> None:
    agent = await rig.agent("w", metadata={"system:gpus": 1})
    job = await rig.submit(requires=("gpus>=1",))
    assert (await rig.engine.explain.job(job)).notes == ()
    await rig.advance(MINUTE)
    await agent.sync(metadata={"system:gpus": 0})
    (note,) = (await rig.engine.explain.job(job)).notes
    assert note.startswith("worker w could have run it until ")
    other = await rig.submit(requires=("gpus>=2",))
    assert (await rig.engine.explain.job(other)).notes == (
        (
            "no known worker could ever run it: "
            "after 10 min it is rejected, reason capability_mismatch"
        ),
    )
    patient = await rig.submit(requires=("gpus>=2",), capability_grace_ms=NEVER)
    assert (await rig.engine.explain.job(patient)).notes == (
        "it is not rejected, however long it waits",
    )


async def test_a_worker_kept_for_a_large_job_says_so_to_both(rig: Rig) -> None:
    agent = await rig.agent("w", metadata={"system:cpus": 4})
    await rig.submit(resources={"cpus": 2})
    await agent.take_one()
    large = await rig.submit(resources={"cpus": 4})
    await rig.advance(6 * MINUTE)
    await agent.sync()
    await rig.scheduling()
    small = await rig.submit(resources={"cpus": 1}, priority=10)
    assert (
        (await rig.engine.explain.job(large))
        .notes[0]
        .startswith("worker w has been reserved for it since ")
    )
    found = await rig.engine.explain.job(small)
    assert found.workers[0].text == (f"worker w: its room is reserved for job {large}")
    assert not await agent.take()


async def test_an_estimate_comes_from_what_such_jobs_took(rig: Rig) -> None:
    agent = await rig.agent("w", slots=1)
    for _ in range(3):
        await rig.submit()
        taken = await agent.take_one()
        await rig.advance(20 * SECOND)
        await agent.finish(taken)
    await rig.submit()
    await rig.advance(MINUTE)
    await StatisticsLoop(rig.engine).run_once(rig.now)
    await agent.take_one()
    job = await rig.submit()
    found = await rig.engine.explain.job(job)
    assert found.estimated_start is not None
    assert found.estimated_start.earliest <= found.estimated_start.likely
    assert (await rig.engine.explain.job(await rig.submit(queue="other"))).ahead == 1

"""A worker on which too many jobs failed for its own faults is drained as bad."""

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.lifecycle.failures import FailureClass, Raised
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import EventKind


async def status(rig: Rig, agent: Agent) -> WorkerStatus:
    return WorkerStatus((await rig.worker(agent.id)).status)


async def fail_jobs(
    rig: Rig, agent: Agent, count: int, failure: FailureClass, raised: Raised | None = None
) -> None:
    for n in range(count):
        await rig.submit(args=n)
        await agent.fail(await agent.take_one(), failure, raised=raised)


async def test_a_worker_on_which_five_jobs_failed_is_drained_as_bad(rig: Rig) -> None:
    agent = await rig.agent()
    await fail_jobs(rig, agent, 4, FailureClass.RESOURCE)
    assert await status(rig, agent) is WorkerStatus.ONLINE
    await fail_jobs(rig, agent, 1, FailureClass.NETWORK)
    assert await status(rig, agent) is WorkerStatus.DRAINING
    row = await rig.worker(agent.id)
    assert row.reason == "bad worker: 5 different jobs failed for infrastructure reasons"
    said = [event.reason for event in await rig.events() if event.kind == EventKind.WORKER]
    assert said[-1] == f"Worker worker-1 is drained: {row.reason}"


async def test_failures_of_the_work_itself_are_no_evidence(rig: Rig) -> None:
    agent = await rig.agent()
    await fail_jobs(rig, agent, 8, FailureClass.EXECUTION)
    assert await status(rig, agent) is WorkerStatus.ONLINE


async def test_what_functions_raise_about_services_and_their_own_needs_is_no_evidence(
    rig: Rig,
) -> None:
    agent = await rig.agent()
    refused = Raised(("ConnectionRefusedError", "ConnectionError", "OSError", "Exception"))
    await fail_jobs(rig, agent, 6, FailureClass.NETWORK, refused)
    await fail_jobs(rig, agent, 6, FailureClass.RESOURCE, Raised(("MemoryError", "Exception")))
    assert await status(rig, agent) is WorkerStatus.ONLINE


async def test_jobs_that_pass_limits_of_their_own_are_no_evidence(rig: Rig) -> None:
    agent = await rig.agent()
    for n in range(6):
        await rig.submit(args=n)
        job = await agent.take_one()
        await agent.finish(job, "failed", failure="resource", own_limit=True)
    assert await status(rig, agent) is WorkerStatus.ONLINE


async def test_a_full_disk_is_evidence_also_if_a_function_meets_it(rig: Rig) -> None:
    agent = await rig.agent()
    await fail_jobs(rig, agent, 5, FailureClass.RESOURCE, Raised(("OSError", "Exception")))
    assert await status(rig, agent) is WorkerStatus.DRAINING


async def test_failures_more_than_ten_minutes_apart_do_not_add_up(rig: Rig) -> None:
    agent = await rig.agent()
    await fail_jobs(rig, agent, 4, FailureClass.RESOURCE)
    await rig.engine.jobs.cancel([1, 2, 3, 4])
    await rig.advance(10 * MINUTE)
    await fail_jobs(rig, agent, 4, FailureClass.RESOURCE)
    assert await status(rig, agent) is WorkerStatus.ONLINE


async def test_one_job_that_fails_again_and_again_is_no_evidence(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.submit(retries=10)
    for retry in range(6):
        await agent.fail(await agent.take_one(), FailureClass.RESOURCE)
        await rig.advance(5 * 2**retry * SECOND)
    assert await status(rig, agent) is WorkerStatus.ONLINE


async def test_enabling_a_bad_worker_forgives_it(rig: Rig) -> None:
    agent = await rig.agent()
    await fail_jobs(rig, agent, 5, FailureClass.RESOURCE)
    await rig.engine.workers.set_status(agent.id, WorkerStatus.ONLINE)
    await rig.engine.jobs.cancel([1, 2, 3, 4, 5])
    await fail_jobs(rig, agent, 1, FailureClass.RESOURCE)
    assert await status(rig, agent) is WorkerStatus.ONLINE

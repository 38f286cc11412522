"""A worker that fails far more often than its peers goes on probation, and comes back by itself."""

from collections.abc import Sequence
from typing import Any

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FailureClass, Raised
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import Event, EventKind, Level, level_of
from windlass.messages.sync import Finished

RESOURCE = FailureClass.RESOURCE
NETWORK = FailureClass.NETWORK


async def status(rig: Rig, agent: Agent) -> WorkerStatus:
    return WorkerStatus((await rig.worker(agent.id)).status)


async def complete(rig: Rig, agents: Sequence[Agent], each: int, **fields: Any) -> None:
    """Let every worker complete some jobs."""
    for agent in agents:
        for n in range(each):
            await rig.submit(args=n, **fields)
            await agent.finish(await agent.take_one())


async def fail_jobs(
    rig: Rig, agent: Agent, count: int, failure: FailureClass = RESOURCE,
    raised: Raised | None = None, **fields: Any,
) -> list[int]:  # fmt: skip
    """Let a worker fail different jobs; they are canceled, so that nobody else gets them."""
    jobs = []
    for n in range(count):
        jobs.append(await rig.submit(args=n, **fields))
        await agent.fail(await agent.take_one(), failure, raised=raised)
    await rig.engine.jobs.cancel(jobs)
    await rig.engine.background.finish()
    return jobs


async def one_bad_of_three(rig: Rig) -> tuple[Agent, list[Agent]]:
    """Return a worker that is on probation, and two good ones."""
    bad, *good = agents = [await rig.agent(f"worker-{n}") for n in range(3)]
    await complete(rig, agents, 5)
    await complete(rig, good, 25)
    await fail_jobs(rig, bad, 5)
    assert await status(rig, bad) is WorkerStatus.PROBATION
    return bad, good


async def pass_time(rig: Rig, agents: Sequence[Agent], ms: int) -> None:
    """Let time pass while these workers go on syncing and the health loop runs."""
    while ms > 0:
        step = min(ms, 30 * SECOND)
        await rig.advance(step)
        for agent in agents:
            await agent.sync()
        await rig.health()
        ms -= step


async def said_of_workers(rig: Rig) -> list[Event]:
    return [event for event in await rig.events() if event.kind == EventKind.WORKER]


async def test_a_worker_that_fails_more_often_than_its_peers_goes_on_probation(rig: Rig) -> None:
    bad, good = await one_bad_of_three(rig)
    for agent in good:
        assert await status(rig, agent) is WorkerStatus.ONLINE
    row = await rig.worker(bad.id)
    assert row.reason == (
        "5 of 10 jobs failed on it for infrastructure reasons, 0.0% of the same kinds on other "
        "workers"
    )
    last = (await said_of_workers(rig))[-1]
    assert last.reason == (
        f"Worker worker-0 is on probation: {row.reason}; it gets one job at a time"
    )
    assert level_of(last) is Level.WARNING


async def test_on_probation_a_worker_gets_one_job_at_a_time_and_comes_back(rig: Rig) -> None:
    bad, _ = await one_bad_of_three(rig)
    for n in range(8):
        await rig.submit(args=n)
    for _ in range(3):
        (given,) = await bad.take(5)
        assert await bad.take(5) == ()
        await bad.finish(given)
    assert await status(rig, bad) is WorkerStatus.ONLINE
    assert (await said_of_workers(rig))[-1].reason == (
        "Worker worker-0 is no longer on probation: 3 jobs in a row completed on it"
    )
    assert len(await bad.take(5)) == 5
    assert (await rig.worker(bad.id)).troubles is None


async def test_after_each_test_job_that_fails_it_waits_longer_for_the_next(rig: Rig) -> None:
    bad, good = await one_bad_of_three(rig)
    for pause in (1, 2, 4, 5, 5):
        await rig.submit(retries=0)
        await bad.fail(await bad.take_one(), RESOURCE)
        await rig.submit()
        await pass_time(rig, [bad, *good], pause * MINUTE - SECOND)
        assert await bad.take(5) == ()
        await rig.advance(SECOND)
        await bad.finish(await bad.take_one(), "failed", failure="execution")
        await rig.health()
        assert await status(rig, bad) is WorkerStatus.PROBATION


async def test_a_rate_that_all_share_is_no_evidence(rig: Rig) -> None:
    agents = [await rig.agent(f"worker-{n}") for n in range(4)]
    for _ in range(3):
        await complete(rig, agents, 10)
        for agent in agents:
            await fail_jobs(rig, agent, 10, NETWORK)
        await rig.health()
    assert {await status(rig, agent) for agent in agents} == {WorkerStatus.ONLINE}


async def test_a_kind_of_job_that_no_peer_has_run_is_no_evidence(rig: Rig) -> None:
    bad, *good = [await rig.agent(f"worker-{n}") for n in range(3)]
    await complete(rig, good, 30)
    await fail_jobs(rig, bad, 14, NETWORK, queue="streams")
    await rig.health()
    assert await status(rig, bad) is WorkerStatus.ONLINE


async def test_media_jobs_whose_source_is_down_blame_nobody(rig: Rig) -> None:
    agents = [await rig.agent(f"worker-{n}", metadata={"ffmpeg:available": True}) for n in range(2)]
    args = {"inputs": ["http://127.0.0.1:9/clip.mp4"], "output": "out.mp4"}
    jobs = [await rig.submit("ffmpeg", args=args) for _ in range(30)]
    for agent in agents[1:]:
        for _ in range(14):
            await agent.finish(await agent.take_one())
    for _ in range(14):
        await agents[0].fail(await agents[0].take_one(), NETWORK, "Connection refused")
    await rig.health()
    assert len(jobs) == 30
    assert {await status(rig, agent) for agent in agents} == {WorkerStatus.ONLINE}
    assert {(await rig.worker(agent.id)).troubles for agent in agents} == {None}


async def test_jobs_that_fail_on_other_workers_too_are_no_evidence(rig: Rig) -> None:
    first, *others = agents = [await rig.agent(f"worker-{n}") for n in range(3)]
    await complete(rig, agents, 20)
    for n in range(10):
        await rig.submit(args=n)
        await first.fail(await first.take_one(), RESOURCE)
    await rig.advance(5 * SECOND)
    for given in await others[0].take(10):
        await others[0].fail(given, RESOURCE)
    await rig.health()
    assert {await status(rig, agent) for agent in agents} == {WorkerStatus.ONLINE}


async def test_a_worker_is_cleared_when_its_jobs_fail_elsewhere(rig: Rig) -> None:
    bad, *good = agents = [await rig.agent(f"worker-{n}") for n in range(3)]
    await complete(rig, agents, 5)
    await complete(rig, good, 25)
    for n in range(5):
        await rig.submit(args=n)
        await bad.fail(await bad.take_one(), RESOURCE)
    await rig.advance(5 * SECOND)
    assert await status(rig, bad) is WorkerStatus.PROBATION
    for given in await good[0].take(5):
        await good[0].fail(given, RESOURCE)
    await rig.health()
    assert await status(rig, bad) is WorkerStatus.ONLINE
    assert (await said_of_workers(rig))[-1].reason == (
        "Worker worker-0 is no longer on probation: jobs that failed on it failed on other "
        "workers too"
    )


async def test_functions_that_lose_their_process_together_count_against_nobody(rig: Rig) -> None:
    bad, *good = [await rig.agent(f"worker-{n}") for n in range(3)]
    await complete(rig, good, 30)
    for n in range(12):
        await rig.submit(args=n)
    lost = FailureClass.WORKER_LOST.value
    ends = tuple(
        Finished(one.job, one.attempt, "failed", None, lost, "its process was killed")
        for one in await bad.take(12)
    )
    await bad.sync(finished=ends)
    assert (await rig.worker(bad.id)).troubles is None


async def test_the_only_worker_is_never_put_on_probation(rig: Rig) -> None:
    agent = await rig.agent()
    await complete(rig, [agent], 5)
    await fail_jobs(rig, agent, 30)
    await rig.health()
    assert await status(rig, agent) is WorkerStatus.ONLINE


async def test_the_last_worker_that_can_run_ready_jobs_is_spared(rig: Rig) -> None:
    bad = await rig.agent("worker-0", metadata={"kind": "gpu"})
    good = [await rig.agent(f"worker-{n}") for n in (1, 2)]
    await complete(rig, [bad], 10)
    await complete(rig, good, 30)
    await rig.submit(requires=["kind == gpu"], priority=-9)
    await fail_jobs(rig, bad, 12)
    await rig.health()
    assert await status(rig, bad) is WorkerStatus.ONLINE


async def test_a_worker_on_probation_comes_back_when_it_is_the_last_one(rig: Rig) -> None:
    bad, good = await one_bad_of_three(rig)
    await rig.submit()
    for agent in good:
        await rig.engine.workers.set_status(agent.id, WorkerStatus.DRAINING)
    await rig.health()
    assert await status(rig, bad) is WorkerStatus.ONLINE


async def test_stale_evidence_takes_nothing_away_for_good(rig: Rig) -> None:
    bad, good = await one_bad_of_three(rig)
    await rig.restart()
    for agent in (bad, *good):
        agent.engine = rig.engine
    await pass_time(rig, [bad, *good], 10 * MINUTE)
    assert await status(rig, bad) is WorkerStatus.ONLINE
    assert (await said_of_workers(rig))[-1].reason == (
        "Worker worker-0 is no longer on probation: nothing has failed on it for 10 min"
    )


async def test_a_worker_that_starts_again_begins_afresh(rig: Rig) -> None:
    bad, _ = await one_bad_of_three(rig)
    await bad.enrol(takeover=True)
    assert await status(rig, bad) is WorkerStatus.ONLINE
    await rig.health()
    assert await status(rig, bad) is WorkerStatus.ONLINE


async def test_operators_end_a_probation_and_their_drain_stays(rig: Rig) -> None:
    bad, _ = await one_bad_of_three(rig)
    await rig.engine.workers.set_status(bad.id, WorkerStatus.ONLINE)
    await rig.health()
    assert await status(rig, bad) is WorkerStatus.ONLINE
    await rig.engine.workers.set_status(bad.id, WorkerStatus.DRAINING, "drain by ann")
    for _ in range(3):
        await rig.advance(10 * MINUTE)
        await rig.health()
    assert (await rig.worker(bad.id)).reason in ("drain by ann", "lost while draining")


async def test_explain_names_the_worker_on_probation(rig: Rig) -> None:
    bad, good = await one_bad_of_three(rig)
    for agent in good:
        await rig.submit()
        await agent.take_one()
    job = await rig.submit()
    answer = await rig.engine.explain.job(job)
    assert any("gets one job at a time: on probation (5 of 10" in (one.why or "")
               for one in answer.workers)  # fmt: skip
    summary = (await rig.engine.explain.worker(bad.id)).summary
    assert summary.startswith("gets one job at a time: on probation (5 of 10 jobs failed on it")


async def test_jobs_that_outlive_those_that_failed_are_compared_as_well(rig: Rig) -> None:
    """So a worker that fails at once is noticed while its peers run their first long jobs."""
    bad, *good = agents = [await rig.agent(f"worker-{n}", slots=8) for n in range(4)]
    for n in range(24):
        await rig.submit(args=n)
    for agent in good:
        assert len(await agent.take(8)) == 8
    await pass_time(rig, agents, MINUTE)
    await fail_jobs(rig, bad, 5)
    assert await status(rig, bad) is WorkerStatus.PROBATION


async def test_failures_of_the_work_itself_are_no_evidence(rig: Rig) -> None:
    bad, *good = [await rig.agent(f"worker-{n}") for n in range(3)]
    await complete(rig, good, 30)
    await fail_jobs(rig, bad, 12, FailureClass.EXECUTION)
    refused = Raised(("ConnectionRefusedError", "ConnectionError", "OSError", "Exception"))
    await fail_jobs(rig, bad, 12, NETWORK, refused)
    await fail_jobs(rig, bad, 12, RESOURCE, Raised(("MemoryError", "Exception")))
    for n in range(12):
        await rig.submit(args=n)
        job = await bad.take_one()
        await bad.finish(job, "failed", failure="resource", own_limit=True)
    assert (await rig.worker(bad.id)).troubles is None


async def test_a_full_disk_is_evidence_also_if_a_function_meets_it(rig: Rig) -> None:
    bad, *good = [await rig.agent(f"worker-{n}") for n in range(3)]
    await complete(rig, good, 30)
    await fail_jobs(rig, bad, 5, RESOURCE, Raised(("OSError", "Exception")))
    assert await status(rig, bad) is WorkerStatus.PROBATION


async def test_failures_more_than_ten_minutes_apart_do_not_add_up(rig: Rig) -> None:
    bad, *good = agents = [await rig.agent(f"worker-{n}") for n in range(3)]
    for _ in range(3):
        await complete(rig, good, 30)
        await fail_jobs(rig, bad, 4)
        await pass_time(rig, agents, 10 * MINUTE)
    assert await status(rig, bad) is WorkerStatus.ONLINE


async def test_one_job_that_fails_again_and_again_is_no_evidence(rig: Rig) -> None:
    bad, *good = [await rig.agent(f"worker-{n}") for n in range(3)]
    await complete(rig, good, 30)
    await rig.submit(retries=10)
    for retry in range(8):
        await bad.fail(await bad.take_one(), RESOURCE)
        await rig.health()
        await rig.advance(5 * 2**retry * SECOND)
    assert await status(rig, bad) is WorkerStatus.ONLINE


async def test_without_the_rule_nobody_is_suspected_and_who_was_comes_back(rig: Rig) -> None:
    bad, good = await one_bad_of_three(rig)
    await rig.restart(Config(bad_worker_jobs=0))
    await rig.health()
    assert await status(rig, bad) is WorkerStatus.ONLINE
    for agent in (bad, *good):
        agent.engine = rig.engine
    await fail_jobs(rig, bad, 20)
    await rig.health()
    assert await status(rig, bad) is WorkerStatus.ONLINE

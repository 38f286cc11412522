"""Resources, anti-affinity, limits of queues, rates: a claim gives out only what has room."""

import asyncio

import pytest

from tests.engine.jobs.test_limits import at_most
from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.matching.shapes import Rate
from windlass.domain.values.errors import InvalidInput
from windlass.engine.fleet.queues import adopt_leases
from windlass.messages.sync import Assignment
from windlass.messages.workers import QueueLimits

BIG = {"system:cpus": 8, "system:memory": 16 * 2**30, "resource:licences": 2}


async def ids(agent: Agent, want: int = 10) -> list[int]:
    return [job.job for job in await agent.take(want)]


# Resources


async def test_a_worker_gets_what_fits_beside_what_it_holds(rig: Rig) -> None:
    jobs = [await rig.submit(resources={"cpus": 3}, args=n) for n in range(4)]
    agent = await rig.agent(metadata=BIG)
    first, second = await agent.take(10)
    assert [first.job, second.job] == jobs[:2]
    assert await agent.take(10) == ()
    await agent.finish(first)
    assert await ids(agent) == [jobs[2]]


async def test_every_resource_counts(rig: Rig) -> None:
    for n in range(3):
        await rig.submit(resources={"cpus": 1, "licences": 1}, args=n)
    agent = await rig.agent(metadata=BIG)
    assert len(await agent.take(10)) == 2


async def test_a_job_that_does_not_fit_does_not_hide_those_behind_it(rig: Rig) -> None:
    agent = await rig.agent(metadata=BIG)
    await rig.submit(resources={"cpus": 5})
    await agent.take_one()
    large = await rig.submit(resources={"cpus": 6}, priority=5)
    alike = [await rig.submit(resources={"cpus": 6}, priority=5, args=n) for n in range(30)]
    small = await rig.submit(resources={"cpus": 2})
    plain = await rig.submit()
    assert await ids(agent) == [small, plain]
    assert await rig.states(large, *alike[:2]) == ["queued"] * 3


async def test_many_large_jobs_of_many_shapes_hide_nothing(rig: Rig) -> None:
    agent = await rig.agent(metadata=BIG)
    await rig.submit(resources={"cpus": 5})
    await agent.take_one()
    for n in range(40):
        await rig.submit(f"t{n}", resources={"cpus": 6}, priority=5)
    plain = await rig.submit()
    assert await ids(agent) == [plain]


async def test_a_job_goes_to_the_worker_that_has_room_for_it(rig: Rig) -> None:
    first, second = [await rig.agent(name, metadata=BIG) for name in ("a", "b")]
    await rig.submit(resources={"cpus": 8})
    await first.take_one()
    waits = await rig.submit(resources={"cpus": 4})
    assert await ids(first) == []
    assert await ids(second) == [waits]


async def test_jobs_of_workers_that_share_processors_take_one_each(rig: Rig) -> None:
    agent = await rig.agent(metadata={**BIG, "system:cpus": 3, "system:shares": True})
    jobs = [await rig.submit(args=n) for n in range(3)]
    large = await rig.submit(resources={"cpus": 2})
    held = list(await agent.take(10))
    assert [job.job for job in held] == jobs
    await agent.finish(held.pop())
    assert await ids(agent) == []
    await agent.finish(held.pop())
    assert await ids(agent) == [large]


async def test_an_ended_or_lost_attempt_gives_its_resources_back(rig: Rig) -> None:
    await rig.end_grace()
    jobs = [await rig.submit(resources={"cpus": 8}, args=n) for n in range(2)]
    dead = await rig.agent("dead", metadata=BIG)
    await dead.take_one()
    alive = await rig.agent("alive", metadata=BIG)
    (held,) = await alive.take(10)
    assert held.job == jobs[1]
    await rig.pass_time(100 * SECOND)
    await dead.enrol(metadata=BIG, takeover=True)
    await rig.advance(MINUTE)
    assert jobs[0] in await ids(dead)


async def test_a_worker_that_grew_gets_more_and_one_that_shrank_keeps_what_it_has(rig: Rig) -> None:
    jobs = [await rig.submit(resources={"cpus": 4}, args=n) for n in range(4)]
    agent = await rig.agent(metadata={"system:cpus": 4})
    assert await ids(agent) == jobs[:1]
    await rig.engine.workers.set_metadata(agent.id, {"system:cpus": 12})
    assert await ids(agent) == jobs[1:3]
    await rig.engine.workers.set_metadata(agent.id, {"system:cpus": 4})
    assert await ids(agent) == []


# Anti-affinity


async def test_jobs_apart_run_on_workers_of_their_own(rig: Rig) -> None:
    jobs = [await rig.submit(apart="db", args=n) for n in range(3)]
    first, second = [await rig.agent(name) for name in ("a", "b")]
    (held,) = await first.take(10)
    assert held.job == jobs[0]
    assert await ids(second) == jobs[1:2]
    assert await ids(second) == []
    await first.finish(held)
    assert await ids(first) == jobs[2:]


async def test_apart_holds_across_shapes_and_within_a_namespace(rig: Rig) -> None:
    first = await rig.submit("build", apart="db")
    await rig.submit("test", apart="db")
    other = await rig.submit("test", apart="cache")
    foreign = await rig.submit("test", apart="db", namespace="team")
    assert await ids(await rig.agent()) == [first, other, foreign]


# Limits of queues


async def limit(
    rig: Rig, max_running: int | None = None, max_per_worker: int | None = None
) -> None:
    limits = QueueLimits(max_running=max_running, max_per_worker=max_per_worker)
    assert await rig.engine.queues.set_limits("bulk", limits)


async def test_no_more_of_a_queue_runs_than_it_may(rig: Rig) -> None:
    await limit(rig, max_running=3)
    jobs = [await rig.submit(queue="bulk", args=n) for n in range(5)]
    free = await rig.submit(queue="slow")
    agents = [await rig.agent(name) for name in ("a", "b")]
    held = await agents[0].take(2)
    assert [job.job for job in held] == jobs[:2]
    assert await ids(agents[1]) == [jobs[2], free]
    assert await ids(agents[0]) == []
    await agents[0].finish(held[0])
    assert await ids(agents[1]) == [jobs[3]]


async def test_a_full_queue_with_many_shapes_hides_nothing(rig: Rig) -> None:
    await limit(rig, max_running=1)
    for n in range(30):
        await rig.submit(f"t{n}", queue="bulk", priority=100)
    free = await rig.submit()
    agent = await rig.agent()
    assert len(await agent.take(1)) == 1
    assert await ids(agent) == [free]


async def test_a_limit_counts_what_runs_already(rig: Rig) -> None:
    for n in range(5):
        await rig.submit(queue="bulk", args=n)
    agent = await rig.agent()
    held = await agent.take(3)
    await limit(rig, max_running=2)
    assert await agent.take(3) == ()
    await agent.finish(held[0])
    assert await agent.take(3) == ()
    await agent.finish(held[1])
    assert len(await agent.take(3)) == 1


async def test_a_limit_can_be_lifted_and_set_again(rig: Rig) -> None:
    for n in range(9):
        await rig.submit(queue="bulk", args=n)
    agent = await rig.agent()
    await limit(rig, max_running=1)
    (first,) = await agent.take(3)
    await limit(rig, max_running=0)
    second, third = await agent.take(2)
    await limit(rig, max_running=2)
    assert await agent.take(3) == ()
    for job in (first, second):
        await agent.finish(job)
    assert len(await agent.take(3)) == 1
    assert (await rig.engine.queues.set_limits("bulk", QueueLimits(max_running=2))) is False
    await agent.finish(third)


@pytest.mark.parametrize("outcome", ["completed", "failed", "canceled", "timed_out"])
async def test_every_end_of_an_attempt_frees_its_place_in_the_queue(rig: Rig, outcome: str) -> None:
    await limit(rig, max_running=1)
    _, second = [await rig.submit(queue="bulk", args=n) for n in range(2)]
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), outcome)  # type: ignore[arg-type]
    assert await ids(agent) == [second]


async def test_a_lost_worker_frees_its_places_in_the_queue(rig: Rig) -> None:
    await rig.end_grace()
    await limit(rig, max_running=1)
    _, second = [await rig.submit(queue="bulk", args=n) for n in range(2)]
    await (await rig.agent("dead")).take_one()
    await rig.pass_time(100 * SECOND)
    assert await ids(await rig.agent("alive")) == [second]


async def test_a_worker_holds_no_more_of_a_queue_than_it_may(rig: Rig) -> None:
    await limit(rig, max_per_worker=2)
    jobs = [await rig.submit(queue="bulk", args=n) for n in range(5)]
    first, second = [await rig.agent(name) for name in ("a", "b")]
    held = await first.take(10)
    assert [job.job for job in held] == jobs[:2]
    assert await ids(second) == jobs[2:4]
    await first.finish(held[0])
    assert await ids(first) == jobs[4:]


async def test_a_queue_and_a_key_limit_the_same_job(rig: Rig) -> None:
    await limit(rig, max_running=2)
    for n in range(3):
        await rig.submit(queue="bulk", concurrency=at_most(1), priority=5, args=n)
    other = [await rig.submit(queue="bulk", args=n) for n in range(3)]
    agent = await rig.agent()
    held = await agent.take(10)
    assert [job.job for job in held][1:] == other[:1]
    await agent.finish(held[1])
    assert await ids(agent) == other[1:2]


async def test_leases_from_before_a_limit_are_counted_when_they_are_seen(rig: Rig) -> None:
    await limit(rig, max_running=2)
    await rig.submit(queue="bulk")
    (held,) = await (await rig.agent()).take(1)
    await rig.store.transact(lambda tx: tx.placement.bind([held.job], None))
    await rig.store.transact(lambda tx: tx.limits.bump({1: -1}))
    assert await rig.engine.run(adopt_leases) == 1
    assert await rig.engine.run(adopt_leases) == 0
    assert (await rig.snapshot()).limits[0].leased == 1


@pytest.mark.parametrize("value", [-1, 1_000_001, True, "3"])
async def test_nonsense_is_no_limit(rig: Rig, value: object) -> None:
    with pytest.raises(InvalidInput, match="0 for no limit"):
        await rig.engine.queues.set_limits("bulk", QueueLimits(max_running=value))  # type: ignore[arg-type]


# Rates


def rate(most: int, per_s: int, key: str = "api") -> Rate:
    return Rate(key, most, per_s * SECOND)


async def test_no_more_jobs_start_than_the_rate_allows(rig: Rig) -> None:
    jobs = [await rig.submit(rate=rate(2, 60), args=n) for n in range(5)]
    free = await rig.submit()
    agent = await rig.agent()
    assert await ids(agent) == [*jobs[:2], free]
    await rig.advance(30 * SECOND)
    assert await ids(agent) == []
    await rig.advance(30 * SECOND)
    assert await ids(agent) == jobs[2:4]
    await rig.advance(59 * SECOND)
    assert await ids(agent) == []


async def test_a_rate_is_shared_by_shapes_and_each_keeps_to_its_own_numbers(rig: Rig) -> None:
    first = await rig.submit("a", rate=rate(3, 60))
    second = await rig.submit("b", rate=rate(1, 60))
    third = await rig.submit("a", rate=rate(3, 60))
    foreign = await rig.submit("b", rate=rate(1, 60), namespace="team")
    agent = await rig.agent()
    assert await ids(agent) == [first, third, foreign]
    await rig.advance(60 * SECOND)
    assert await ids(agent) == [second]


async def test_a_retry_is_a_start_too(rig: Rig) -> None:
    job = await rig.submit(rate=rate(1, 600))
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), "failed", failure="network")
    await rig.advance(MINUTE)
    assert await ids(agent) == []
    await rig.advance(9 * MINUTE)
    assert await ids(agent) == [job]


@pytest.mark.parametrize(("most", "per_ms"), [(0, 1), (1_001, 1), (1, 0), (1, 2**60), (True, 5)])
async def test_nonsense_is_no_rate(rig: Rig, most: int, per_ms: int) -> None:
    with pytest.raises(InvalidInput, match="rate"):
        await rig.submit(rate=Rate("api", most, per_ms))


# Waiting


async def test_who_has_no_room_passes_the_call_on(rig: Rig) -> None:
    full, idle = [await rig.agent(name, metadata=BIG) for name in ("a", "b")]
    await rig.submit(resources={"cpus": 8})
    await full.take_one()
    calls = [asyncio.ensure_future(agent.sync(want=1, wait_ms=30_000)) for agent in (full, idle)]
    while len(rig.engine.waiting_syncs) < 2:
        await asyncio.wait(calls, timeout=0.01)
    large = await rig.submit(resources={"cpus": 8})
    reply = await asyncio.wait_for(calls[1], 20)
    assert [job.job for job in reply.jobs] == [large]
    rig.engine.waiting_syncs.wake_all()
    rig.engine.waiting_syncs.end(full.id)
    assert (await calls[0]).jobs == ()


async def test_a_place_in_a_queue_that_becomes_free_wakes_a_worker(rig: Rig) -> None:
    await limit(rig, max_running=1)
    first, second = [await rig.submit(queue="bulk", args=n) for n in range(2)]
    busy, idle = [await rig.agent(name) for name in ("a", "b")]
    held: Assignment = await busy.take_one()
    assert held.job == first
    await idle.sync(want=1)  # so that the engine knows it
    call = asyncio.ensure_future(idle.sync(want=1, wait_ms=30_000))
    while not len(rig.engine.waiting_syncs):
        await asyncio.wait([call], timeout=0.01)
    await busy.sync(finished=())
    await busy.finish(held)
    reply = await asyncio.wait_for(call, 20)
    assert [job.job for job in reply.jobs] == [second]


async def test_jobs_that_name_no_processors_take_none(rig: Rig) -> None:
    agent = await rig.agent(metadata={**BIG, "system:cpus": 2, "system:shares": True})
    idle = [await rig.submit(resources={"cpus": 0}) for _ in range(5)]
    busy = [await rig.submit() for _ in range(3)]
    assert {job.job for job in await agent.take(20)} == {*idle, *busy[:2]}

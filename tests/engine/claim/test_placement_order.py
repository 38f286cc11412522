"""Who comes first beyond rank: preferences, reservations for large jobs, shares of namespaces."""

import asyncio
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, Rig
from windlass.domain.config import Config
from windlass.domain.matching.claim_planning import in_turn
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.records import Ticket
from windlass.domain.values.ids import AttemptNo, JobId, ShapeId
from windlass.messages.sync import SyncReply

FOUR = {"system:cpus": 4}


# Preferences


async def waiting(rig: Rig, *agents: Agent) -> list["asyncio.Task[SyncReply]"]:
    """Open a sync of each, in this order, that waits for a job."""
    calls = []
    for agent in agents:
        await agent.sync(want=1)  # so that the engine knows it
        calls.append(asyncio.ensure_future(agent.sync(want=1, wait_ms=30_000)))
        while len(rig.engine.waiting_syncs) < len(calls):
            await asyncio.wait(calls, timeout=0.01)
    return calls


async def end(rig: Rig, *agents: Agent) -> None:
    for agent in agents:
        rig.engine.waiting_syncs.end(agent.id)


async def test_the_worker_that_a_job_prefers_is_woken(rig: Rig) -> None:
    plain = await rig.agent("plain", metadata={"drive": "slow"})
    cached = await rig.agent("cached", metadata={"cache:repo": ["linux", "git"]})
    calls = await waiting(rig, plain, cached)
    job = await rig.submit(prefers=("cache:repo has linux", "drive == fast"))
    reply = await asyncio.wait_for(calls[1], 20)
    assert [given.job for given in reply.jobs] == [job]
    await end(rig, plain)
    assert (await calls[0]).jobs == ()


async def test_a_worker_that_costs_nothing_is_woken_before_one_of_a_pool(rig: Rig) -> None:
    paid = await rig.agent("paid", metadata={"pool:name": "cloud"})
    own = await rig.agent("own")
    calls = await waiting(rig, paid, own)
    await rig.submit()
    assert len((await asyncio.wait_for(calls[1], 20)).jobs) == 1
    await end(rig, paid)
    assert (await calls[0]).jobs == ()


async def test_a_preference_never_delays_a_job(rig: Rig) -> None:
    job = await rig.submit(prefers=("cache:repo has linux",))
    await rig.agent("cached", metadata={"cache:repo": "linux"})
    other = await rig.agent("other")
    assert [given.job for given in await other.take(1)] == [job]


async def test_workers_that_ask_at_once_get_what_prefers_them(rig: Rig) -> None:
    plain = await rig.agent("plain")
    cached = await rig.agent("cached", metadata={"cache:repo": "linux"})
    for agent in (plain, cached):
        await agent.sync(want=0)
    choosy = await rig.submit(prefers=("cache:repo == linux",))
    modest = await rig.submit()
    replies = await asyncio.gather(plain.sync(want=1), cached.sync(want=1))
    taken = [[given.job for given in reply.jobs] for reply in replies]
    assert taken == [[modest], [choosy]]
    last = await rig.submit(prefers=("cache:repo == linux",))
    replies = await asyncio.gather(plain.sync(want=1), cached.sync(want=0))
    assert [given.job for given in replies[0].jobs] == [last]


# Reservations


async def steady(rig: Rig, rounds: int, large: int) -> int | None:
    """Small jobs come and go, one after another; in which round the large one starts."""
    agent = await rig.agent(metadata=FOUR)
    held = list(await agent.take(4))
    for n in range(rounds):
        if any(job.job == large for job in held):
            return n
        await rig.submit(resources={"cpus": 1}, priority=10, args=n)
        await agent.finish(held.pop(0))
        await rig.scheduling()
        held += await agent.take(4)
        await rig.advance(MINUTE // 2)
    return None


async def test_a_large_job_starts_although_small_ones_keep_coming(rig: Rig) -> None:
    for n in range(8):
        await rig.submit(resources={"cpus": 1}, priority=10, args=n)
    large = await rig.submit(resources={"cpus": 4})
    started = await steady(rig, 40, large)
    assert started is not None
    assert (await rig.snapshot()).reservations == ()


async def test_without_reservations_it_does_not(rig: Rig) -> None:
    await rig.restart(Config(reservation_after_ms=0))
    for n in range(8):
        await rig.submit(resources={"cpus": 1}, priority=10, args=n)
    large = await rig.submit(resources={"cpus": 4})
    assert await steady(rig, 40, large) is None


async def reserved(rig: Rig) -> tuple[Agent, int]:
    """A worker of four processors with three in use, kept for a job that needs two."""
    agent = await rig.agent(metadata=FOUR)
    await rig.submit(resources={"cpus": 3})
    await agent.take_one()
    large = await rig.submit(resources={"cpus": 2})
    await rig.advance(5 * MINUTE)
    await rig.scheduling()
    (kept,) = (await rig.snapshot()).reservations
    assert (kept.worker, kept.job) == (agent.id, large)
    return agent, large


async def test_a_kept_worker_gives_out_nothing_that_needs_what_is_missing(rig: Rig) -> None:
    agent, large = await reserved(rig)
    await rig.submit(resources={"cpus": 1}, priority=10)
    assert await agent.take(5) == ()
    other = await rig.agent("other", metadata=FOUR)
    assert len(await other.take(1)) == 1
    plain = await rig.submit()
    assert [job.job for job in await agent.take(1)] == [plain]
    assert await rig.state(large) == "queued"


@pytest.mark.parametrize("how", ["cancel", "elsewhere", "drain", "remove"])
async def test_a_reservation_ends_with_its_reason(rig: Rig, how: str) -> None:
    agent, large = await reserved(rig)
    if how == "cancel":
        await rig.engine.jobs.cancel([large])
    elif how == "elsewhere":
        await (await rig.agent("other", metadata=FOUR)).take_one()
    elif how == "drain":
        await rig.engine.workers.set_status(agent.id, WorkerStatus.DRAINING)
    else:
        await rig.engine.workers.remove(agent.id, force=True)
    await rig.scheduling()
    assert (await rig.snapshot()).reservations == ()


async def test_no_worker_is_kept_for_a_job_that_fits_somewhere_or_nowhere(rig: Rig) -> None:
    agent = await rig.agent(metadata=FOUR)
    await rig.submit(resources={"cpus": 3})
    await agent.take_one()
    await rig.agent("idle", metadata=FOUR)
    await rig.submit(resources={"cpus": 4})
    await rig.submit(resources={"cpus": 9})
    await rig.advance(60 * MINUTE)
    await rig.scheduling()
    assert (await rig.snapshot()).reservations == ()


async def test_a_job_and_a_worker_have_one_reservation_at_most(rig: Rig) -> None:
    agents = [await rig.agent(f"w{n}", metadata=FOUR) for n in range(3)]
    for agent in agents:
        await rig.submit(resources={"cpus": 4})
        await agent.take_one()
    for n in range(2):
        await rig.submit(f"t{n}", resources={"cpus": 4})
    await rig.advance(10 * MINUTE)
    for _ in range(3):
        await rig.scheduling()
    kept = (await rig.snapshot()).reservations
    assert len(kept) == 2
    assert len({row.worker for row in kept}) == len({row.job for row in kept}) == 2


# Shares


async def shared(rig: Rig, counts: dict[str, int], take: int) -> Counter[str]:
    """How many jobs of each namespace are given out first."""
    whose: dict[int, str] = {}
    for namespace, count in counts.items():
        for n in range(count):
            whose[await rig.submit(namespace=namespace, args=n)] = namespace
    agent = await rig.agent()
    given: list[str] = []
    while len(given) < take:
        given += [whose[job.job] for job in await agent.take(min(3, take - len(given)))]
    return Counter(given)


async def test_namespaces_share_what_runs(rig: Rig) -> None:
    await rig.restart(Config(fair_share=1))
    assert await shared(rig, {"a": 30, "b": 10, "c": 10}, 9) == {"a": 3, "b": 3, "c": 3}


async def test_weights_say_how_much_each_has(rig: Rig) -> None:
    await rig.restart(Config(fair_share=1))
    assert await rig.engine.queues.set_namespace_weight("b", 3)
    assert not await rig.engine.queues.set_namespace_weight("b", 3)
    assert await shared(rig, {"a": 20, "b": 20}, 8) == {"a": 2, "b": 6}


async def test_shares_are_off_unless_they_are_asked_for(rig: Rig) -> None:
    assert await shared(rig, {"a": 10, "b": 10}, 8) == {"a": 8}


async def test_a_more_urgent_job_comes_before_any_share(rig: Rig) -> None:
    await rig.restart(Config(fair_share=1))
    for n in range(4):
        await rig.submit(namespace="b", args=n)
    urgent = [await rig.submit(namespace="a", priority=1, args=n) for n in range(4)]
    agent = await rig.agent()
    assert [job.job for job in await agent.take(4)] == urgent


async def test_a_namespace_of_many_shapes_has_no_larger_share(rig: Rig) -> None:
    await rig.restart(Config(fair_share=1))
    for n in range(40):
        await rig.submit(f"t{n}", namespace="a")
    late = [await rig.submit(namespace="b", args=n) for n in range(5)]
    agent = await rig.agent()
    taken = [job.job for job in await agent.take(10)]
    assert set(late) <= set(taken)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), max_size=30))
def test_turns_keep_each_ones_order_and_differ_by_one_at_most(jobs: list[tuple[str, int]]) -> None:
    names = {1: "a", 2: "b", 3: "c"}
    shapes = {name: shape for shape, name in names.items()}
    tickets = [
        Ticket(ShapeId(shapes[name]), rank, JobId(n), AttemptNo(0), None, None, None)
        for n, (name, rank) in enumerate(jobs, 1)
    ]
    ordered = in_turn(tickets, names.__getitem__, {}, {})
    assert sorted(ordered) == sorted(tickets)
    for shape in names:
        mine = [ticket for ticket in ordered if ticket.shape == shape]
        assert mine == sorted(mine, key=lambda t: (t.rank, t.job))
    left = Counter(ticket.shape for ticket in ordered)
    had: Counter[int] = Counter()
    for ticket in ordered:
        assert all(had[ticket.shape] <= had[shape] for shape in left if left[shape])
        had[ticket.shape] += 1
        left[ticket.shape] -= 1


def test_shares_can_be_switched_by_configuration() -> None:
    assert msgspec.structs.replace(Config(), fair_share=1).fair_share == 1

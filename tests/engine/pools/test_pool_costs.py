"""Costs from what attempts took: exact between two looks, and across servers that die."""

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.cloud import ServerKilledError, Sky
from tests.engine.support.rig import MINUTE, SECOND, Rig
from tests.store.conformance.driver import KINDS
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.values.quantities import month_of

Costs = dict[tuple[str, str], int]

TEAM = {"namespace": "team", "queue": "live"}
OTHER = {"namespace": "other", "queue": "batch"}


async def costs(sky: Sky) -> Costs:
    """Seconds by namespace and queue; idle time under empty names."""
    rows = await sky.pools.costs(month_of(sky.rig.now))
    return {(row.namespace, row.queue): row.ms // SECOND for row in rows}


async def work(rig: Rig, agent: Agent, seconds: int, job: dict[str, str]) -> None:
    """One job, from its submit to its end."""
    await rig.submit(**job)
    taken = await agent.take_one()
    await rig.advance(seconds * SECOND)
    await agent.finish(taken)


async def test_jobs_between_two_looks_pay_for_their_time(rig: Rig) -> None:
    sky = Sky(rig)
    (agent,) = await sky.online(1, hourly_price=3.6)
    await work(rig, agent, 3, TEAM)
    await work(rig, agent, 2, OTHER)
    await rig.advance(4 * SECOND)
    await work(rig, agent, 1, TEAM)
    await sky.round()
    assert await costs(sky) == {("team", "live"): 4, ("other", "batch"): 2, ("", ""): 4}
    await sky.round()
    assert await costs(sky) == {("team", "live"): 4, ("other", "batch"): 2, ("", ""): 4}
    rows = await sky.pools.costs(month_of(rig.now))
    assert sum(row.micros for row in rows) == 10_000 == sum(row.ms for row in rows)


async def test_a_job_under_way_pays_until_now_and_the_rest_when_it_has_ended(rig: Rig) -> None:
    sky = Sky(rig)
    (agent,) = await sky.online(1)
    await rig.submit(**TEAM)
    await rig.advance(5 * SECOND)
    job = await agent.take_one()
    await rig.advance(7 * SECOND)
    await sky.round()
    assert await costs(sky) == {("", ""): 5, ("team", "live"): 7}
    await rig.advance(2 * SECOND)
    await agent.finish(job)
    await rig.advance(1 * SECOND)
    await sky.round()
    assert await costs(sky) == {("", ""): 6, ("team", "live"): 9}


async def test_attempts_that_fail_or_are_given_back_pay_too(rig: Rig) -> None:
    sky = Sky(rig)
    (agent,) = await sky.online(1)
    await rig.submit(**TEAM)
    job = await agent.take_one()
    await rig.advance(3 * SECOND)
    await agent.fail(job, FailureClass.NETWORK)
    await rig.submit(**OTHER)
    job = await agent.take_one()
    await rig.advance(4 * SECOND)
    await agent.release(job, "no")
    await sky.round()
    assert await costs(sky) == {("team", "live"): 3, ("other", "batch"): 4}


async def test_jobs_at_the_same_time_share_a_machine(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(min_workers=1, slots=2)
    await sky.round()
    (agent,) = await sky.boot(slots=2)
    await sky.round()
    await rig.submit_all(TEAM, OTHER)
    one, two = await agent.take(2)
    await rig.advance(4 * SECOND)
    await agent.finish(one)
    await rig.advance(3 * SECOND)
    await agent.finish(two)
    await sky.round()
    assert sorted((await costs(sky)).values()) == [2, 5]


@pytest.mark.parametrize("rig", KINDS, indirect=True)  # PostgreSQL's rows of workers lag behind
async def test_a_server_that_dies_charges_nothing_twice_and_forgets_nothing(rig: Rig) -> None:
    sky = Sky(rig)
    (agent,) = await sky.online(1)
    await work(rig, agent, 3, TEAM)
    await sky.round()
    await work(rig, agent, 2, OTHER)
    await sky.apply(min_workers=2)
    sky.cloud.kills = "after"
    with pytest.raises(ServerKilledError):
        await sky.round()
    await sky.restart()
    agent.engine = rig.engine
    await work(rig, agent, 20, TEAM)  # by then the dead one has lost the turn
    await sky.round()
    told = await costs(sky)
    assert (told["team", "live"], told["other", "batch"]) == (23, 2)
    assert told["", ""] == 20, "the second machine, while the first one worked"


async def test_a_provider_out_of_reach_keeps_no_accounts_from_being_made(rig: Rig) -> None:
    """What was done meanwhile is charged to those who had it done."""
    sky = Sky(rig)
    (agent,) = await sky.online(1)
    sky.cloud.out_of_reach = True
    for _ in range(3):
        await work(rig, agent, 4, TEAM)
        await sky.round()
    sky.cloud.out_of_reach = False
    await sky.round()
    assert await costs(sky) == {("team", "live"): 12}


async def test_a_deleted_pool_leaves_its_costs_and_nothing_else(rig: Rig) -> None:
    sky = Sky(rig)
    (agent,) = await sky.online(1)
    await work(rig, agent, 60, TEAM)
    await sky.pools.delete("p", "tests")
    for _ in range(4):
        await sky.round()
    assert await sky.pools.all() == []
    assert (await costs(sky))["team", "live"] == MINUTE // SECOND
    left = (await rig.snapshot()).meta
    assert [name for name, _ in left if name.startswith("pool_")] == []

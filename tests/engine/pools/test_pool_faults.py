"""Pools when servers are killed and clouds fail: nothing leaks, nothing is started twice."""

import pytest

from tests.engine.support.cloud import Cloud, ServerKilledError, Sky
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.ports.provider import Owner


async def test_a_server_killed_after_the_call_finds_the_machine_by_its_tag(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply()
    await rig.submit()
    sky.cloud.kills = "after"
    with pytest.raises(ServerKilledError):
        await sky.round()
    assert await sky.states() == ["requested"]
    await sky.restart()
    await rig.advance(20 * SECOND)
    await sky.round()
    assert await sky.states() == ["starting"]
    assert len(sky.cloud.launches) == 1


async def test_a_server_killed_before_the_call_makes_it_later(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply()
    await rig.submit()
    sky.cloud.kills = "before"
    with pytest.raises(ServerKilledError):
        await sky.round()
    await sky.restart()
    await rig.advance(2 * MINUTE)
    await sky.round()
    assert await sky.states() == ["starting"]
    assert len(sky.cloud.machines) == 1
    assert len(await sky.rows()) == 1, "the same worker, not another"


async def test_refused_launches_are_tried_again_with_growing_pauses(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(failure_cooldown_seconds=10)
    await rig.submit()
    sky.cloud.refuses = 3
    pauses = []
    while sky.cloud.refuses:
        before = len(sky.cloud.launches)
        waited = 0
        while len(sky.cloud.launches) == before:
            await rig.advance(SECOND)
            waited += 1
            await sky.round()
        pauses.append(waited)
    assert pauses == [1, 10, 20]
    (shown,) = await sky.pools.all()
    assert shown.row.failures == 3
    assert shown.row.message == "no capacity in this zone"
    (planned,) = (await sky.pools.plan()).verdicts
    assert planned.reason.startswith("3 launches in a row failed, next try in 40 s: no capacity")
    await rig.advance(40 * SECOND)
    await sky.round()
    await sky.boot()
    await sky.round()
    (shown,) = await sky.pools.all()
    assert (shown.row.failures, shown.row.message) == (0, None)


async def test_a_machine_that_never_comes_online_is_replaced(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(start_timeout_seconds=120, failure_cooldown_seconds=10)
    await rig.submit()
    await sky.round()
    (first,) = sky.cloud.machines
    await rig.advance(121 * SECOND)
    await sky.round()
    assert sky.cloud.ended == [first]
    await rig.advance(10 * SECOND)
    await sky.round()
    (second,) = sky.cloud.machines
    assert second != first
    await sky.boot()
    await sky.round()
    assert await sky.states() == ["online"]


async def test_a_worker_that_ended_at_its_start_says_why(rig: Rig) -> None:
    class Talking(Cloud):
        def last_words(self, owner: Owner, token: str) -> str | None:
            return f"no module for {owner.pool}" if token in self.orders else None

    sky = Sky(rig, Talking())
    await sky.apply()
    await rig.submit()
    await sky.round()
    sky.cloud.machines.clear()
    await rig.advance(SECOND)
    await sky.round()
    (shown,) = await sky.pools.all()
    assert shown.row.message == "the machine went away before it came online: no module for p"


async def test_a_machine_that_was_taken_away_loses_its_jobs_to_another(rig: Rig) -> None:
    sky = Sky(rig)
    (agent,) = await sky.online(1)
    job = await rig.submit()
    await agent.take_one()
    sky.cloud.machines.clear()
    await rig.advance(SECOND)
    await sky.round()
    assert await sky.states() == ["terminating", "starting"], "the minimum is kept"
    for _ in range(20):
        await rig.advance(10 * SECOND)
        await rig.health()
    assert await rig.state(job) == "retrying"
    await sky.round()
    (replacement,) = await sky.boot()
    await sky.round()
    assert await sky.states() == ["online"]
    await rig.advance(MINUTE)
    await rig.engine.due_jobs.move()
    assert (await replacement.take_one()).job == job


async def test_a_new_machine_may_be_missing_in_lists_for_a_while(rig: Rig) -> None:
    sky = Sky(rig, Cloud(settle_ms=30_000))
    await sky.apply()
    await rig.submit()
    await sky.round()
    hidden = dict(sky.cloud.machines)
    sky.cloud.machines.clear()
    await rig.advance(29 * SECOND)
    await sky.round()
    assert await sky.states() == ["starting"]
    sky.cloud.machines.update(hidden)
    await rig.advance(29 * SECOND)
    await sky.round()
    assert await sky.states() == ["starting"]
    sky.cloud.machines.clear()
    await sky.round()
    assert (await sky.states())[0] == "terminating"


async def test_machines_that_nobody_knows_are_ended(rig: Rig) -> None:
    sky = Sky(rig)
    (agent,) = await sky.online(1)
    machine = sky.cloud.machines[agent.name]
    sky.cloud.machines["p-unknown"] = machine._replace(token="p-unknown", id="i-99")
    report = await sky.round()
    assert report.leaks == 1
    assert sky.cloud.ended == ["p-unknown"]
    assert set(sky.cloud.machines) == {agent.name}


async def test_a_worker_that_was_removed_by_hand_takes_its_machine_along(rig: Rig) -> None:
    sky = Sky(rig)
    (online,) = await sky.online(1)
    await rig.engine.workers.remove(online.id)
    await sky.round()
    assert sky.cloud.ended == [online.name]
    (starting,) = [row for row in await sky.rows() if row.token in sky.cloud.machines]
    await rig.engine.workers.remove(starting.known_worker)
    await sky.round()
    assert sky.cloud.ended == [online.name, starting.token]


async def test_a_cloud_out_of_reach_changes_nothing(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.online(2)
    sky.cloud.out_of_reach = True
    await rig.submit_all(*({} for _ in range(5)))
    await sky.round()
    assert await sky.states() == ["online", "online"]
    (shown,) = await sky.pools.all()
    assert shown.row.message == "the cloud cannot be reached"
    assert (await sky.pools.plan()).fleet.pools[0].message == "the cloud cannot be reached"


async def test_a_pool_whose_provider_fails_leaves_the_work_to_others(rig: Rig) -> None:
    """It is asked first, and cannot be asked: nobody counts on workers that will not come."""
    sky = Sky(rig)
    sky.cloud.out_of_reach = True
    await sky.apply(failure_cooldown_seconds=30)
    await rig.submit_all(*({} for _ in range(20)))
    await sky.round()
    assert await sky.states() == []
    assert (await rig.snapshot()).workers == ()
    (planned,) = (await sky.pools.plan()).verdicts
    assert (planned.start, planned.wanted) == (0, 4)
    said = "its provider is failing, next try in 30 s: the cloud cannot be reached"
    assert planned.reason == said
    sky.cloud.out_of_reach = False
    await rig.advance(30 * SECOND)
    await sky.round()
    assert await sky.states() == ["starting"] * 4
    assert [shown.row.message for shown in await sky.pools.all()] == [None]


async def test_a_pool_that_never_could_ask_its_provider_can_be_deleted(rig: Rig) -> None:
    sky = Sky(rig)
    sky.cloud.out_of_reach = True
    await sky.apply(min_workers=1)
    await sky.round()
    await sky.pools.delete("p", "tests")
    await sky.round()
    assert await sky.pools.all() == []


@pytest.mark.parametrize("rig", ["memory", "postgres"], indirect=True)
async def test_two_servers_start_no_more_than_one_would(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply()
    await rig.submit_all(*({} for _ in range(20)))
    other = Sky(rig, sky.cloud, await rig.another_engine())
    await sky.round()
    idle = await other.round()
    assert rig.kind == "memory" or idle.pools == 0, "the first has the turn"
    await sky.round()
    await rig.advance(20 * SECOND)
    assert (await other.round()).pools == 1, "the first has let it pass"
    assert len(sky.cloud.launches) == len(sky.cloud.machines) == 4


async def test_machines_of_a_cloud_without_lists_are_ended_once(rig: Rig) -> None:
    sky = Sky(rig, Cloud(lists=False))
    (agent,) = await sky.online(1)
    await sky.apply(min_workers=0)
    await rig.advance(60 * SECOND)
    await agent.sync()
    for _ in range(4):
        await sky.round()
    assert await sky.states() == []
    assert sky.cloud.ended == [agent.name]


async def test_a_stubborn_machine_is_told_again_and_costs_until_it_is_gone(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.online(1)
    await sky.pools.delete("p", "tests")
    sky.cloud.stubborn = True
    for _ in range(4):
        await sky.round()
    assert await sky.states() == ["terminating"]
    assert len(sky.cloud.ended) > 1
    sky.cloud.machines.clear()
    await sky.round()
    assert await sky.pools.all() == []

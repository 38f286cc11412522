"""Pools over every store: workers come when work waits, and go when they idle."""

import pytest

from tests.engine.cloud import Cloud, ServerKilledError, Sky
from tests.engine.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.errors import InvalidInput, NotFound
from windlass.domain.moments import month_of
from windlass.domain.workers import WorkerStatus


async def test_work_brings_as_many_workers_as_the_formula_says(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply()
    await rig.submit_all(*({} for _ in range(20)))
    report = await sky.round()
    assert (report.wanted, report.launched) == (4, 4)
    assert await sky.states() == ["starting"] * 4
    again = await sky.round()
    assert (again.wanted, again.launched) == (0, 0)
    assert len(sky.cloud.machines) == 4


async def test_a_worker_goes_its_whole_way(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(architectures=["arm64"], metadata={"zone": "a"})
    job = await rig.submit(requires=["system:architectures has arm64"])
    await sky.round()
    (agent,) = await sky.boot(metadata={"system:architectures": ["amd64"], "tool": "x"})
    await sky.round()
    assert await sky.states() == ["online"]
    worker = await rig.worker(agent.id)
    assert worker.static == '{"pool:name":"p","system:architectures":["arm64"],"zone":"a"}'
    taken = await agent.take_one()
    for _ in range(3):
        await rig.advance(MINUTE)
        await agent.sync()
        await sky.round()
    assert await sky.states() == ["online"], "it holds a job"
    assert await rig.state(job) == "running"
    await agent.finish(taken)
    await sky.round()
    await rig.advance(59 * SECOND)
    await sky.round()
    assert await sky.states() == ["online"]
    await rig.advance(SECOND)
    await sky.round()
    assert await sky.states() == ["draining"]
    assert (await agent.sync(want=1)).drain
    await sky.round()
    assert await sky.states() == ["terminating"]
    assert sky.cloud.ended == [agent.name]
    await sky.round()
    assert await sky.states() == []
    assert (await rig.snapshot()).workers == ()
    assert [row.worker for row in await sky.rows()] == [0]


async def test_short_jobs_between_two_looks_are_no_idling(rig: Rig) -> None:
    sky = Sky(rig)
    (agent,) = await sky.online(1, max_idle_seconds=10)
    await sky.apply(min_workers=0, max_idle_seconds=10)
    for _ in range(4):
        await rig.advance(8 * SECOND)
        await rig.submit()
        await agent.finish(await agent.take_one())
        await sky.round()
    assert await sky.states() == ["online"]
    await rig.advance(10 * SECOND)
    await sky.round()
    assert await sky.states() == ["draining"]


async def test_one_that_has_just_got_a_job_is_not_sent_away(rig: Rig) -> None:
    """Between the look at idling and the drain there is no gap: both are one transaction."""
    sky = Sky(rig)
    (agent,) = await sky.online(1)
    await sky.apply(min_workers=0)
    await rig.advance(61 * SECOND)
    await rig.submit()
    await agent.take_one()
    await sky.round()
    assert await sky.states() == ["online"]
    assert (await rig.worker(agent.id)).status == WorkerStatus.ONLINE


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
    assert planned.reason.startswith("3 launches in a row failed, next try in 40s: no capacity")
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
    await rig.engine.promote_due()
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


async def test_a_deleted_pool_lets_its_workers_finish(rig: Rig) -> None:
    sky = Sky(rig)
    busy, _ = await sky.online(2)
    await rig.submit()
    job = await busy.take_one()
    assert await sky.pools.delete("p", "tests") is True
    assert await sky.pools.delete("p", "tests") is False
    await rig.submit_all(*({} for _ in range(50)))
    for _ in range(3):
        await sky.round()
        assert await busy.take() == ()
    assert await sky.states() == ["draining"]
    assert busy.name in sky.cloud.machines
    await busy.finish(job)
    for _ in range(3):
        await sky.round()
    assert sky.cloud.machines == {}
    assert await sky.pools.all() == []
    with pytest.raises(NotFound):
        await sky.pools.delete("p", "tests")


async def test_a_disabled_pool_drains_and_an_enabled_one_starts_again(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.online(2)
    await sky.apply(enabled=False)
    for _ in range(3):
        await sky.round()
    assert await sky.states() == []
    assert (await sky.pools.plan()).verdicts[0].reason != ""
    await sky.apply(min_workers=1)
    await sky.round()
    assert await sky.states() == ["starting"]


async def test_costs_are_told_by_what_workers_do(rig: Rig) -> None:
    sky = Sky(rig)
    first, _ = await sky.online(2, hourly_price=3.6)
    await rig.submit(queue="live", namespace="team")
    await first.take_one()
    await sky.round()
    before = {(c.namespace, c.queue): c.ms for c in await sky.pools.costs(month_of(rig.now))}
    await rig.advance(100 * SECOND)
    await sky.round()
    after = {(c.namespace, c.queue): c for c in await sky.pools.costs(month_of(rig.now))}
    assert after["team", "live"].ms - before.get(("team", "live"), 0) == 100_000
    assert after["", ""].ms - before.get(("", ""), 0) == 100_000
    assert after["team", "live"].micros == after["team", "live"].ms
    (shown,) = await sky.pools.all()
    assert sum(c.ms for c in shown.costs) == sum(c.ms for c in after.values())


async def test_a_spent_budget_starts_nothing_and_sends_all_home(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(max_seconds_per_month=600, max_idle_seconds=HOUR, expected_seconds=10)
    await rig.submit_all(*({} for _ in range(500)))
    await sky.round()
    count = len(sky.cloud.machines)
    assert 0 < count < 10
    agents = await sky.boot()
    for _ in range(100):
        await rig.advance(10 * SECOND)
        for agent in agents:
            if agent.name in sky.cloud.machines:
                await agent.sync()
        await sky.round()
    assert sky.cloud.machines == {}
    spent = sum(cost.ms for cost in await sky.pools.costs(month_of(rig.now)))
    assert 300 * SECOND < spent <= 600 * SECOND
    (planned,) = (await sky.pools.plan()).verdicts
    assert (planned.start, planned.reason[-28:]) == (0, "this month's budget are left")


async def test_a_pool_that_is_unknown_sends_one_ahead_and_learns(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply()
    await rig.submit_all(*({"requires": ["ffmpeg:available==true"]} for _ in range(100)))
    await sky.round()
    assert len(sky.cloud.machines) == 1
    await sky.boot(metadata={"ffmpeg:available": False})
    await sky.round()
    await sky.round()
    assert len(sky.cloud.machines) == 1
    assert (await sky.pools.plan()).useless == ["p"]


@pytest.mark.parametrize("rig", ["memory", "postgres"], indirect=True)
async def test_two_servers_start_no_more_than_one_would(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply()
    await rig.submit_all(*({} for _ in range(20)))
    other = Sky(rig, sky.cloud, await rig.another_engine())
    await sky.round()
    await other.round()
    await sky.round()
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


async def test_the_same_description_again_changes_nothing(rig: Rig) -> None:
    sky = Sky(rig)
    given = {"name": "q", "max_workers": 2}
    assert (await sky.pools.apply(given, "ada"))[1] is True
    assert (await sky.pools.apply(given, "ada"))[1] is False
    assert (await sky.pools.apply({**given, "max_workers": 3}, "ada"))[1] is True
    with pytest.raises(InvalidInput, match="max_workers"):
        await sky.pools.apply({**given, "min_workers": 9}, "ada")

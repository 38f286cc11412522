"""Pools whose workers take several jobs at once: by slots, by resources, by what jobs forbid."""

from typing import Any

import pytest

from tests.engine.support.cloud import Sky
from tests.engine.support.rig import Rig
from windlass.engine.pools import pools
from windlass.engine.pools import snapshot as pool_fleet
from windlass.messages.workers import QueueLimits

WORKER = {"resources": {"cpus": 8}}
LARGE: dict[str, Any] = {"resources": {"cpus": 4}}


async def wanted(sky: Sky) -> int:
    """How many workers the pool would like to have more."""
    return (await sky.pools.plan()).verdicts[0].wanted


async def test_resources_say_how_many_jobs_a_worker_takes(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(**WORKER)
    await rig.submit_all(*(LARGE for _ in range(200)))
    assert await wanted(sky) == 20, "200 s for 5 s, and each worker runs two at once"
    await sky.apply(**WORKER, slots=1)
    assert await wanted(sky) == 40, "its slots say so"
    await sky.apply(resources={"cpus": 7})
    assert await wanted(sky) == 40, "half a job is none"


async def test_jobs_that_name_no_resources_take_a_processor_each(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(**WORKER)
    await rig.submit_all(*({} for _ in range(200)))
    assert await wanted(sky) == 5


async def test_as_many_as_were_asked_for_are_enough_when_they_are_online(rig: Rig) -> None:
    """The same before a worker was seen and after, when they say themselves what they have."""
    sky = Sky(rig)
    await sky.apply(**WORKER)
    await rig.submit_all(*(LARGE for _ in range(20)))
    await sky.round()
    assert len(sky.cloud.machines) == 2
    assert [order.slots for order in sky.cloud.orders.values()] == [None, None]
    first, second = await sky.boot(slots=8, metadata={"system:cpus": 8, "system:shares": True})
    await sky.round()
    assert len(sky.cloud.machines) == 2
    (target,) = (await sky.pools.plan()).fleet.targets
    assert sum(target.hosts.values()) == 2, "one kind of worker, which takes two"
    assert len(await first.take(8)) == len(await second.take(8)) == 2


async def test_a_job_that_no_worker_could_hold_is_reported(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(**WORKER)
    await sky.apply(name="small", resources={"cpus": 2})
    await rig.submit(resources={"cpus": 16})
    plan = await sky.pools.plan()
    assert [verdict.wanted for verdict in plan.verdicts] == [0, 0]
    (target,) = plan.fleet.targets
    assert target.obstacle == "a worker of pool p could not run it: needs cpus ≥ 16, has 8"
    assert sorted(plan.useless) == ["p", "small"]


async def test_jobs_that_keep_apart_need_a_worker_each(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(slots=4)
    await rig.submit_all(*({"apart": "disk"} for _ in range(20)))
    assert await wanted(sky) == 4
    await rig.engine.queues.set_limits("default", QueueLimits(max_per_worker=2))
    await rig.submit_all(*({} for _ in range(20)))
    assert await wanted(sky) == 6, "20 s in single places, 20 s in pairs"


async def test_jobs_beyond_the_limit_of_a_queue_bring_no_workers(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(expected_seconds=60)
    await rig.engine.queues.set_limits("batch", QueueLimits(max_running=3))
    await rig.submit_all(*({"queue": "batch"} for _ in range(50)))
    assert await wanted(sky) == 3
    agent = await rig.agent(slots=2)
    assert len(await agent.take(2)) == 2
    (target,) = (await sky.pools.plan()).fleet.targets
    assert (target.queued, target.running) == (1, 2)


async def test_explain_tells_what_a_pool_does_about_a_job(rig: Rig) -> None:
    sky = Sky(rig)
    job = await rig.submit()

    async def note() -> str:
        found = await rig.engine.explain.job(job)
        return found.notes[-1]

    await sky.apply(max_workers=0, failure_cooldown_seconds=20)
    assert await note() == (
        "pool p could start a worker for it, but is at its limit (max_workers is 0): "
        "it is not rejected"
    )
    await sky.apply(enabled=False)
    assert "but is not enabled" in await note()
    await sky.apply(failure_cooldown_seconds=20)
    assert "as `windlass pools plan` shows" in await note()
    sky.cloud.refuses = 1
    await sky.round()
    assert "and tries again in 20 s: no capacity in this zone" in await note()
    await sky.apply(failure_cooldown_seconds=21)
    await sky.round()
    await sky.round()
    assert await note() == "a worker of pool p is on its way"
    found = await rig.engine.explain.job(job)
    assert "to start: its pool has asked for it" in found.summary
    assert found.smallest_change is not None
    assert [step.action for step in found.smallest_change.steps] == ["wait"]


async def test_a_plan_says_that_a_pool_is_not_enabled(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(enabled=False)
    await rig.submit()
    plan = await sky.pools.plan()
    (target,) = plan.fleet.targets
    assert target.obstacle == "pool p could run it, but is not enabled"
    assert [verdict.reason for verdict in plan.verdicts] == ["the pool is not enabled"]
    assert plan.useless == []


async def test_very_many_jobs_are_all_counted(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """In spans, beyond what one transaction counts; where counting ends, the plan says so."""
    for name, bound in (("MAX_COUNTED", 20), ("MAX_SURVEYED", 100)):
        monkeypatch.setattr(pool_fleet, name, bound)
        monkeypatch.setattr(pools, name, bound)
    sky = Sky(rig)
    await sky.apply()
    await rig.submit_all(*({} for _ in range(70)), *({"queue": "live"} for _ in range(3)))
    assert await wanted(sky) == 15
    (target,) = (await sky.pools.plan()).fleet.targets
    assert (target.queued, target.more) == (73, False)
    await rig.submit_all(*({} for _ in range(50)))
    (target,) = (await sky.pools.plan()).fleet.targets
    assert (target.queued, target.more) == (103, True)

"""Pools over every store: workers come when work waits, and go when they idle."""

from typing import Any

import pytest

from tests.engine.support.cloud import Sky
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.job.forms import Concurrency
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.quantities import month_of
from windlass.engine.fleet.enrolment import Enrolment, set_credentials
from windlass.engine.history.statistics import SETTLED_MS
from windlass.engine.loops.statistics import StatisticsLoop


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


async def test_what_nobody_may_start_brings_no_workers(rig: Rig) -> None:
    """A paused queue, jobs beyond a limit, and jobs that are not due."""
    sky = Sky(rig)
    await sky.apply(expected_seconds=60)
    await rig.engine.queues.pause("batch")
    limited = {"concurrency": Concurrency("k", 2)}
    later = {"not_before": rig.now + HOUR}
    await rig.submit_all(*({"queue": "batch"} for _ in range(9)), *(later for _ in range(9)))
    assert (await sky.round()).wanted == 0
    await rig.submit_all(*(limited for _ in range(9)))
    assert (await sky.round()).wanted == 2
    await rig.engine.queues.resume("batch")
    assert (await sky.round()).wanted == 9


async def test_measured_runtimes_go_before_expected_ones(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply()
    agent = await rig.agent()
    await rig.submit()
    job = await agent.take_one()
    await rig.advance(10_000)
    await agent.finish(job)
    await rig.engine.workers.remove(agent.id)
    await rig.advance(SETTLED_MS + 1)
    await StatisticsLoop(rig.engine).run_once(rig.now)
    await rig.submit_all(*({} for _ in range(4)))
    assert (await sky.round()).launched == 4, "40 s of work for 5 s, but not more than jobs"
    (planned,) = (await sky.pools.plan()).verdicts
    assert (planned.work_ms, planned.slots, planned.latency_ms) == (40_000, 4, 10_000)


async def test_short_jobs_of_another_kind_do_not_hide_long_ones(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply()
    agent = await rig.agent()
    for ms, argv in ((10, ["echo", "x"]),) * 5 + ((2_000, ["sleep", "2"]),):
        await rig.submit(task="shell", args={"argv": argv})
        job = await agent.take_one()
        await rig.advance(ms)
        await agent.finish(job)
    await rig.engine.workers.remove(agent.id)
    await rig.advance(SETTLED_MS + 1)
    await StatisticsLoop(rig.engine).run_once(rig.now)
    await rig.submit_all(*({"task": "shell", "args": {"argv": ["sleep", "2"]}} for _ in range(40)))
    (planned,) = (await sky.pools.plan()).verdicts
    assert planned.work_ms == 40 * 2_000
    assert planned.wanted == 16, "80 s of work within 5 s"


async def test_a_queue_that_waits_too_long_brings_workers_whatever_the_estimate_says(
    rig: Rig,
) -> None:
    sky = Sky(rig)
    await sky.apply(expected_seconds=0.001)
    await rig.agent(slots=1)
    await rig.submit_all(*({} for _ in range(40)))
    assert (await sky.round()).wanted == 0
    await rig.advance(4 * SECOND)
    assert (await sky.round()).wanted == 0
    await rig.advance(2 * SECOND)
    (planned,) = (await sky.pools.plan()).verdicts
    assert planned.reason == "jobs have waited for 6 s, over the target of 5 s"
    assert (await sky.round()).launched == 1
    assert (await sky.round()).launched == 0, "one is on its way"


async def test_a_pool_that_could_run_a_job_keeps_it_from_being_rejected(rig: Rig) -> None:
    sky = Sky(rig)
    await rig.agent()
    await sky.apply(architectures=["arm64"])
    at_once: dict[str, Any] = {"capability_grace_ms": 0}
    arm = await rig.submit(target="arm64", **at_once)
    unknown = await rig.submit(requires=["tool:version matches >=2"], **at_once)
    other = await rig.submit(target="riscv64", **at_once)
    await rig.engine.settled()
    assert [await rig.state(job) for job in (arm, unknown, other)] == [
        "queued", "queued", "rejected",
    ]  # fmt: skip


async def test_a_worker_goes_its_whole_way(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(architectures=["arm64"], metadata={"zone": "a"})
    job = await rig.submit(requires=["system:architectures has arm64"])
    await sky.round()
    (agent,) = await sky.boot(metadata={"system:architectures": ["amd64"], "tool": "x"})
    await sky.round()
    assert await sky.states() == ["online"]
    worker = await rig.worker(agent.id)
    credentials = Enrolment(name=worker.name, secret="digest", session="other")
    await rig.engine.run(lambda work: set_credentials(work, worker, credentials))
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
    after = await rig.snapshot()
    assert (after.workers, after.tokens) == ((), ())
    assert [row.worker for row in await sky.rows()] == [None]


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
    """It was seen idle, took a job and even finished it: what is decided then looks again."""
    sky = Sky(rig)
    (agent,) = await sky.online(1)
    await sky.apply(min_workers=0)
    await rig.advance(61 * SECOND)
    await sky.loop.tend(await sky.pools.installation())
    await rig.submit()
    job = await agent.take_one()
    await sky.loop.decide()
    assert await sky.states() == ["online"]
    await agent.finish(job)
    await sky.loop.decide()
    assert await sky.states() == ["online"]
    assert (await rig.worker(agent.id)).status == WorkerStatus.ONLINE


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
    assert (planned.start, planned.reason[-27:]) == (0, "this month's budget is left")


async def test_a_job_that_outlasts_the_budget_is_taken_back_and_not_blamed(rig: Rig) -> None:
    sky = Sky(rig)
    (agent,) = await sky.online(1, max_seconds_per_month=200, expected_seconds=10)
    job = await rig.submit()
    taken = await agent.take_one()
    while not (told := (await agent.sync()).cancel):
        await rig.advance(10 * SECOND)
        await sky.round()
    assert [stop.job for stop in told] == [job]
    assert told[0].reason == "the budget of pool p for this month is used up"
    await agent.finish(taken, "canceled")
    for _ in range(3):
        await sky.round()
    assert sky.cloud.machines == {}
    assert (
        160 * SECOND < sum(c.ms for c in await sky.pools.costs(month_of(rig.now))) <= 200 * SECOND
    )
    assert await rig.state(job) == "queued"
    facts = (await rig.record(job)).facts
    assert (facts.failed, facts.lost) == (0, 0)


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
    # Workers that are started otherwise are looked at anew.
    await sky.apply(min_workers=0, options={"env": {"PATH": "/opt/ffmpeg/bin"}})
    assert (await sky.pools.plan()).useless == []


async def test_the_same_description_again_changes_nothing(rig: Rig) -> None:
    sky = Sky(rig)
    given = {"name": "q", "max_workers": 2}
    assert (await sky.pools.apply(given, "ada"))[1] is True
    assert (await sky.pools.apply(given, "ada"))[1] is False
    assert (await sky.pools.apply({**given, "max_workers": 3}, "ada"))[1] is True
    away = {"name": "away", "provider": "ec2", "options": {"image": "ami-1"}}
    with pytest.raises(InvalidInput, match="machines of ec2 cannot reach http://127"):
        await sky.pools.apply(away, "ada")
    assert (await sky.pools.apply({**away, "server": "https://w.example"}, "ada"))[1] is True
    await sky.pools.delete("away", "ada")
    with pytest.raises(InvalidInput, match="max_workers"):
        await sky.pools.apply({**given, "min_workers": 9}, "ada")

"""Workers: enrolment and incarnations, silence, draining, removal."""

from collections import Counter
from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.access.rights import Identity, Role
from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import Conflict, NotFound
from windlass.engine.fleet.workers import MAX_PENDING
from windlass.engine.history.events import WorkerNames
from windlass.messages.sync import Finished
from windlass.operations.queries import Queries


async def ready_agent(rig: Rig, name: str = "worker-1", **fields: Any) -> Agent:
    """A worker on an installation whose first grace is over."""
    await rig.end_grace()
    return await rig.agent(name, **fields)


async def status(rig: Rig, agent: Agent) -> WorkerStatus:
    return WorkerStatus((await rig.worker(agent.id)).status)


async def said_of_workers(rig: Rig) -> list[str | None]:
    return [event.reason for event in await rig.events() if event.kind == EventKind.WORKER]


async def test_a_new_worker_is_its_first_incarnation(rig: Rig) -> None:
    assert await rig.enrol("w") == (1, 1)
    assert await said_of_workers(rig) == ["Worker w enrolled"]


async def test_the_same_name_is_the_same_worker_in_a_new_incarnation(rig: Rig) -> None:
    await rig.enrol("w")
    assert await rig.enrol("w") == (1, 2)


async def test_only_so_many_workers_may_wait_for_approval(rig: Rig) -> None:
    for number in range(MAX_PENDING):
        await rig.enrol(f"stranger-{number}", approved=False)
    with pytest.raises(Conflict, match="approve or remove some") as refused:
        await rig.enrol("one-too-many", approved=False)
    assert refused.value.code == "too_many_pending"
    assert refused.value.retry_after_ms  # the worker asks again by itself
    await rig.enrol("stranger-0", approved=False, holder=1)  # it was there already
    assert await rig.enrol("with-a-code") == (MAX_PENDING + 1, 1)
    await rig.engine.workers.set_status(1, WorkerStatus.ONLINE)
    await rig.enrol("one-too-many", approved=False)


async def _pending(rig: Rig) -> Counter[str | None]:
    rows = await rig.store.read(lambda tx: tx.workers.all())
    return Counter(row.reason for row in rows if row.status == WorkerStatus.PENDING_APPROVAL)


async def test_one_address_does_not_keep_others_from_asking_for_approval(rig: Rig) -> None:
    for number in range(MAX_PENDING):
        await rig.enrol(f"stranger-{number}", approved=False, source="10.0.0.9")
    for number in range(MAX_PENDING // 2):
        await rig.enrol(f"ours-{number}", approved=False, source="10.0.0.1")
    half = MAX_PENDING // 2
    assert await _pending(rig) == {"asked from 10.0.0.9": half, "asked from 10.0.0.1": half}
    assert "Worker stranger-0 made room for other requests" in await said_of_workers(rig)
    for source in ("10.0.0.9", "10.0.0.1"):  # they do not push each other out in turns
        with pytest.raises(Conflict):
            await rig.enrol("one-more", approved=False, source=source)


async def test_workers_that_fell_silent_give_way_to_those_of_other_addresses(rig: Rig) -> None:
    for number in range(MAX_PENDING):
        await rig.enrol(f"stranger-{number}", approved=False, source=f"10.0.0.{number}")
    with pytest.raises(Conflict):
        await rig.enrol("ours", approved=False, source="10.1.0.1")
    await rig.advance(rig.engine.config.heartbeat_timeout_ms + 1)
    await rig.enrol("ours", approved=False, source="10.1.0.1")
    assert sum((await _pending(rig)).values()) == MAX_PENDING


async def test_a_name_whose_jobs_may_still_run_is_in_use(rig: Rig) -> None:
    await rig.submit()
    old = await rig.agent()
    await old.take_one()
    await rig.advance(20 * SECOND)
    with pytest.raises(Conflict, match="still holds 1 job;") as refused:
        await rig.agent()
    assert (refused.value.code, refused.value.retry_after_ms) == ("name_in_use", 70 * SECOND)


async def test_a_name_is_free_again_when_the_old_lease_has_run_out(rig: Rig) -> None:
    job = await rig.submit()
    old = await rig.agent()
    await old.take_one()
    await rig.advance(90 * SECOND)
    new = await rig.agent()
    assert new.incarnation == 2
    assert await rig.state(job) == "retrying"


async def test_a_takeover_ends_the_old_incarnation_at_once(rig: Rig) -> None:
    running, assigned = [await rig.submit(args=n) for n in range(2)]
    old = await rig.agent()
    await old.take_one()
    await old.take_one(prefetch=True)
    new = await rig.agent(takeover=True)
    assert new.incarnation == 2
    assert await rig.states(running, assigned) == ["retrying", "queued"]
    facts = (await rig.record(assigned)).facts
    assert (facts.lost, facts.returned) == (0, 1)
    assert (await rig.record(running)).facts.lost == 1


async def test_a_new_incarnation_starts_with_a_fresh_seq_and_no_leases(rig: Rig) -> None:
    await rig.submit()
    old = await rig.agent()
    for _ in range(5):
        await old.sync(want=1)
    new = await rig.agent(takeover=True)
    await rig.advance(MINUTE)
    assert [job.attempt for job in (await new.sync(want=1)).jobs] == [2]


async def test_a_missed_heartbeat_makes_a_worker_unhealthy(rig: Rig) -> None:
    agent = await ready_agent(rig)
    await rig.pass_time(40 * SECOND)
    assert await status(rig, agent) is WorkerStatus.ONLINE
    await rig.pass_time(5 * SECOND)
    assert await status(rig, agent) is WorkerStatus.UNHEALTHY
    assert "Worker worker-1 missed a heartbeat" in await said_of_workers(rig)


async def test_an_unhealthy_worker_is_heard_again_and_gets_jobs(rig: Rig) -> None:
    agent = await ready_agent(rig)
    await rig.submit()
    await rig.pass_time(50 * SECOND)
    assert len(await agent.take()) == 1
    assert await status(rig, agent) is WorkerStatus.ONLINE
    assert (await said_of_workers(rig))[-1] == "Worker worker-1 is back"


async def test_a_worker_is_lost_after_three_missed_heartbeats(rig: Rig) -> None:
    agent = await ready_agent(rig)
    job = await rig.submit()
    await agent.take_one()
    await rig.pass_time(90 * SECOND)
    assert await rig.state(job) == "running"
    await rig.advance(1)
    report = await rig.health()
    assert (report.lost, report.orphans) == (1, 1)
    assert await status(rig, agent) is WorkerStatus.OFFLINE
    assert await rig.state(job) == "retrying"
    assert (await rig.record(job)).facts.lost == 1


async def test_a_lost_incarnation_must_enrol_again(rig: Rig) -> None:
    agent = await ready_agent(rig)
    await rig.pass_time(100 * SECOND)
    with pytest.raises(Conflict, match="enrol again"):
        await agent.sync()
    await agent.enrol()
    assert (await agent.sync()).applied


async def test_a_heartbeat_is_enough_to_stay(rig: Rig) -> None:
    agent = await ready_agent(rig)
    for _ in range(10):
        await rig.pass_time(30 * SECOND)
        await agent.sync()
    assert await status(rig, agent) is WorkerStatus.ONLINE


async def test_a_zombie_of_an_old_incarnation_keeps_nobody_alive(rig: Rig) -> None:
    zombie = await ready_agent(rig)
    agent = await rig.agent()
    for _ in range(10):
        await rig.pass_time(10 * SECOND)
        with pytest.raises(Conflict):
            await zombie.sync()
    assert await status(rig, agent) is WorkerStatus.OFFLINE


async def test_after_an_outage_every_worker_gets_a_full_lease_to_be_heard(rig: Rig) -> None:
    agent = await ready_agent(rig)
    job = await rig.submit()
    given = await agent.take_one()
    await rig.advance(6 * HOUR)
    report = await rig.health()
    assert (report.lost, report.in_grace) == (0, True)
    await rig.pass_time(90 * SECOND - 1)
    assert await rig.state(job) == "running"
    await agent.finish(given)
    assert await rig.state(job) == "completed"


async def test_after_the_grace_the_silent_are_lost(rig: Rig) -> None:
    agent = await ready_agent(rig)
    job = await rig.submit()
    await agent.take_one()
    await rig.advance(6 * HOUR)
    await rig.pass_time(95 * SECOND)
    assert await rig.state(job) == "retrying"


async def test_a_short_pause_of_the_loop_is_no_outage(rig: Rig) -> None:
    await rig.end_grace()
    await rig.advance(15 * SECOND)
    assert not (await rig.health()).in_grace
    await rig.advance(15 * SECOND + 1)
    assert (await rig.health()).in_grace


@pytest.mark.parametrize("state", [WorkerStatus.DRAINING, WorkerStatus.DISABLED])
async def test_a_drained_or_disabled_worker_gets_no_new_jobs(rig: Rig, state: WorkerStatus) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    given = await agent.take_one()
    await rig.submit()
    assert await rig.engine.workers.set_status(agent.id, state, "maintenance", "ann")
    reply = await agent.sync(want=1)
    assert (reply.jobs, reply.drain) == ((), state is WorkerStatus.DRAINING)
    await agent.finish(given)
    assert await rig.state(first) == "completed"
    assert await rig.engine.workers.set_status(agent.id, WorkerStatus.ONLINE)
    assert len(await agent.take()) == 1


async def test_a_drain_outlives_a_new_incarnation(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.engine.workers.set_status(agent.id, WorkerStatus.DRAINING)
    await agent.enrol()
    assert (await agent.sync()).drain


async def test_setting_a_status_twice_changes_nothing(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.engine.workers.set_status(agent.id, WorkerStatus.DRAINING)
    log = await rig.events()
    assert not await rig.engine.workers.set_status(agent.id, WorkerStatus.DRAINING)
    assert await rig.events() == log


@pytest.mark.parametrize("state", [WorkerStatus.DRAINING, WorkerStatus.DISABLED])
async def test_the_jobs_of_a_drained_or_disabled_worker_that_dies_go_on(
    rig: Rig, state: WorkerStatus
) -> None:
    agent = await ready_agent(rig)
    job = await rig.submit()
    await agent.take_one()
    await rig.engine.workers.set_status(agent.id, state)
    await rig.pass_time(100 * SECOND)
    assert await rig.state(job) == "retrying"


async def test_a_disabled_worker_stays_disabled_when_it_falls_silent(rig: Rig) -> None:
    agent = await ready_agent(rig)
    await rig.engine.workers.set_status(agent.id, WorkerStatus.DISABLED)
    await rig.pass_time(100 * SECOND)
    assert await status(rig, agent) is WorkerStatus.DISABLED


async def test_an_unknown_worker_has_no_status(rig: Rig) -> None:
    for call in (
        rig.engine.workers.set_status(9, WorkerStatus.DRAINING),
        rig.engine.workers.set_metadata(9, {}),
    ):
        with pytest.raises(NotFound, match="worker 9"):
            await call


async def test_a_busy_worker_is_not_removed(rig: Rig) -> None:
    await rig.submit()
    agent = await rig.agent()
    await agent.take_one()
    with pytest.raises(Conflict, match="holds 1 job: drain it") as refused:
        await rig.engine.workers.remove(agent.id)
    assert refused.value.code == "worker_busy"


async def test_an_idle_worker_is_removed_once(rig: Rig) -> None:
    agent = await rig.agent()
    assert await rig.engine.workers.remove(agent.id, actor="ann")
    assert not await rig.engine.workers.remove(agent.id)
    with pytest.raises(NotFound):
        await agent.sync()


async def test_the_jobs_of_a_removed_worker_are_orphans(rig: Rig) -> None:
    jobs = [await rig.submit(args=n) for n in range(3)]
    agent = await rig.agent()
    await agent.take(3)
    await rig.engine.workers.remove(agent.id, force=True)
    assert (await rig.cleanup()).orphans == 3
    assert await rig.states(*jobs) == ["queued"] * 3
    assert (await rig.cleanup()).orphans == 0


async def test_a_worker_that_says_goodbye_is_offline_and_nobody_is_to_blame(rig: Rig) -> None:
    agent = await rig.agent()
    assert await rig.engine.workers.leave(agent.id, agent.incarnation)
    worker = await rig.worker(agent.id)
    assert (worker.status, worker.reason) == (WorkerStatus.OFFLINE, "stopped")
    assert not await rig.engine.workers.leave(agent.id, agent.incarnation)
    with pytest.raises(Conflict, match="has ended"):
        await agent.take()
    await rig.pass_time(10 * MINUTE)
    assert (await rig.engine.metrics()).worker_failures == 0
    await agent.enrol()
    assert (await rig.worker(agent.id)).status == WorkerStatus.ONLINE


async def test_a_drained_worker_that_stops_is_not_lost_and_stays_drained(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.engine.workers.set_status(agent.id, WorkerStatus.DRAINING)
    assert await rig.engine.workers.leave(agent.id, agent.incarnation)
    worker = await rig.worker(agent.id)
    assert (worker.status, worker.reason) == (WorkerStatus.OFFLINE, "stopped while draining")
    await rig.pass_time(10 * MINUTE)
    assert (await rig.engine.metrics()).worker_failures == 0
    await agent.enrol()
    assert (await rig.worker(agent.id)).status == WorkerStatus.DRAINING
    await rig.engine.workers.set_status(agent.id, WorkerStatus.ONLINE)
    await rig.engine.workers.leave(agent.id, agent.incarnation)
    await agent.enrol()
    assert (await rig.worker(agent.id)).status == WorkerStatus.ONLINE


async def test_a_worker_whose_process_is_stopping_drains_for_everybody_until_it_is_back(
    rig: Rig,
) -> None:
    agent = await rig.agent()
    await rig.submit()
    given = await agent.take_one()
    assert (await agent.sync(stopping=True)).drain
    assert await status(rig, agent) is WorkerStatus.DRAINING
    waiting = await rig.submit()
    found = await rig.engine.explain.job(waiting)
    assert [entry.text for entry in found.workers] == [
        f"worker {agent.name}: takes no jobs: draining (its process is stopping)"
    ]
    assert found.smallest_change is not None
    assert found.smallest_change.text == f"start worker {agent.name} again"
    await agent.sync(stopping=True, finished=(Finished(given.job, given.attempt, "completed"),))
    assert await rig.engine.workers.leave(agent.id, agent.incarnation)
    assert (await rig.worker(agent.id)).reason == "stopped"
    await agent.enrol()
    assert len(await agent.take()) == 1


async def test_an_operators_drain_outlasts_a_process_that_was_stopping(rig: Rig) -> None:
    agent = await rig.agent()
    await agent.sync(stopping=True)
    assert await rig.engine.workers.set_status(agent.id, WorkerStatus.DRAINING, "moving", "ann")
    await agent.sync(stopping=True)
    assert (await rig.worker(agent.id)).reason == "moving"
    await rig.engine.workers.leave(agent.id, agent.incarnation)
    await agent.enrol()
    assert await status(rig, agent) is WorkerStatus.DRAINING


async def test_a_worker_that_comes_back_is_no_longer_called_lost(rig: Rig) -> None:
    await rig.end_grace()
    agent = await rig.agent()
    await rig.pass_time(100 * SECOND)
    assert (await rig.worker(agent.id)).reason == "lost"
    await agent.enrol()
    assert (await rig.worker(agent.id)).reason is None


async def test_a_goodbye_counts_for_its_own_incarnation_and_without_jobs(rig: Rig) -> None:
    agent = await rig.agent()
    old = agent.incarnation
    await agent.enrol()
    assert not await rig.engine.workers.leave(agent.id, old)
    await rig.submit()
    held = await agent.take_one()
    assert not await rig.engine.workers.leave(agent.id, agent.incarnation)
    await agent.finish(held)
    await rig.engine.workers.set_status(agent.id, WorkerStatus.DISABLED)
    assert not await rig.engine.workers.leave(agent.id, agent.incarnation)
    assert (await rig.worker(agent.id)).status == WorkerStatus.DISABLED


async def test_a_worker_that_comes_back_is_not_called_lost_or_stopped(rig: Rig) -> None:
    await rig.end_grace()
    agent = await rig.agent("w")
    await rig.pass_time(95 * SECOND)
    assert [w.reason for w in (await rig.snapshot()).workers] == ["lost"]
    agent = await rig.agent("w")
    assert [w.reason for w in (await rig.snapshot()).workers] == [None]
    await rig.engine.workers.leave(agent.id, agent.incarnation)
    await rig.agent("w")
    assert [w.reason for w in (await rig.snapshot()).workers] == [None]


@pytest.mark.parametrize("seconds", [6, 8, 11, 14, 16, 20])
async def test_no_outage_of_the_servers_ends_a_lease_however_long_it_is(
    memory_rig: Rig, seconds: int
) -> None:
    rig = memory_rig
    config = Config(
        heartbeat_interval_ms=2 * SECOND, heartbeat_timeout_ms=14 * SECOND, term_grace_ms=SECOND
    )
    await rig.restart(config)
    await rig.pass_time(20 * SECOND, SECOND)  # past the grace that follows a start
    agent = await rig.agent()
    job = await rig.submit()
    await agent.take_one()
    await rig.health()
    await rig.advance(seconds * SECOND)  # no server runs
    await rig.health()
    assert await rig.state(job) == "running"
    await rig.pass_time(5 * SECOND, SECOND)
    assert await rig.state(job) == "running"


async def test_history_names_a_worker_that_is_gone(rig: Rig) -> None:
    agent = await rig.agent("old-friend")
    number = await rig.submit(retries=1)
    await agent.fail(await agent.take_one(), FailureClass.EXECUTION)
    await rig.advance(MINUTE)
    await agent.finish(await agent.take_one())
    assert await rig.engine.workers.remove(agent.id)
    shown = await Queries(rig.engine).job(number, Identity(0, "me", Role.ADMIN, ()))
    assert [one.worker for one in shown.attempts] == ["old-friend"] * 2
    assert shown.worker == "old-friend"
    assert any("old-friend" in str(change.reason) for change in shown.transitions)
    names = WorkerNames(rig.store)
    await names.learn(await rig.events(number))
    assert names.name_of(agent.id) == "old-friend"
    assert (await rig.snapshot()).past_workers == ((agent.id, "old-friend"),)

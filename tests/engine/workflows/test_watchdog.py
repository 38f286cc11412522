"""The watchdog: silent about every legitimate wait, and it repairs what cannot be."""

import json
from collections.abc import Awaitable, Callable

import pytest

from tests.engine.support.flows import finish_all, row_of, state_of, submit_flow
from tests.engine.support.rig import HOUR, MINUTE, Rig
from windlass.domain.job.forms import Concurrency
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import Event, EventKind
from windlass.engine.loops.watchdog import WatchdogLoop, WatchdogReport
from windlass.engine.submit.submission import Submitted
from windlass.engine.transaction.unit_of_work import Work


async def rounds(rig: Rig, watchdog: WatchdogLoop, count: int = 3) -> list[WatchdogReport]:
    """Let the watchdog run, a minute apart."""
    reports = []
    for _ in range(count):
        reports.append(await watchdog.run_once(rig.now))
        await rig.advance(MINUTE)
    return reports


async def barks(rig: Rig) -> list[Event]:
    return [e for e in await rig.events() if e.kind == EventKind.WATCHDOG]


async def busy_fleet(rig: Rig) -> Submitted:
    agent = await rig.agent(slots=1)
    await rig.submit()
    await agent.take_one()
    return await submit_flow(rig, {})


async def paused_queue(rig: Rig) -> Submitted:
    await rig.engine.queues.pause("batch")
    return await submit_flow(rig, {"queue": "batch"})


async def binding_limit(rig: Rig) -> Submitted:
    limit = Concurrency(key="db", max=1)
    await rig.submit(concurrency=limit)
    await (await rig.agent()).take_one()
    return await submit_flow(rig, {"concurrency": limit})


async def future_start(rig: Rig) -> Submitted:
    return await submit_flow(rig, {"not_before": rig.now + 100 * HOUR})


async def manual_unblock(rig: Rig) -> Submitted:
    return await submit_flow(rig, {"unblock": "manual"}, {"args": 1, "unblock": "manual"})


async def no_worker_for_the_target(rig: Rig) -> Submitted:
    await rig.agent(metadata={"system:architectures": ["amd64"]})
    return await submit_flow(rig, {"target": "riscv64"})


async def a_job_outside(rig: Rig) -> Submitted:
    return await submit_flow(rig, {"after": (await rig.submit(),)})


async def a_long_run(rig: Rig) -> Submitted:
    made = await submit_flow(rig, {"name": "a"}, {"after": ("a",)})
    await (await rig.agent()).take_one()
    return made


async def backing_off(rig: Rig) -> Submitted:
    made = await submit_flow(rig, {"name": "a"}, {"after": ("a",)})
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), "failed", failure="network")
    return made


async def told_to_stop(rig: Rig) -> Submitted:
    made = await submit_flow(rig, {})
    await (await rig.agent()).take_one()
    await rig.engine.workflows.cancel(made.known_workflow)
    return made


WAITS = [
    busy_fleet, paused_queue, binding_limit, future_start, manual_unblock,
    no_worker_for_the_target, a_job_outside, a_long_run, backing_off, told_to_stop,
]  # fmt: skip


@pytest.mark.parametrize("wait", WAITS, ids=lambda wait: wait.__name__)
async def test_it_is_silent_about_a_legitimate_wait(
    rig: Rig, wait: Callable[[Rig], Awaitable[Submitted]]
) -> None:
    made = await wait(rig)
    before = await row_of(rig, made.known_workflow)
    watchdog = WatchdogLoop(rig.engine)
    reports = await rounds(rig, watchdog)
    await rig.advance(rig.engine.config.stall_timeout_ms)
    reports += await rounds(rig, watchdog)
    assert sum(report.examined for report in reports) >= 2
    assert sum(report.repaired + report.canceled for report in reports) == 0
    assert await barks(rig) == []
    assert await row_of(rig, made.known_workflow) == before


async def test_what_moves_is_not_even_examined(rig: Rig) -> None:
    await submit_flow(rig, *({"args": n} for n in range(5)))
    agent, watchdog = await rig.agent(), WatchdogLoop(rig.engine)
    for _ in range(4):
        assert (await watchdog.run_once(rig.now)).examined == 0
        await agent.finish(await agent.take_one())


async def bump(rig: Rig, workflow: int, **by: int) -> None:
    deltas = {workflow: {State(name).code: n for name, n in by.items()}}
    await rig.store.transact(lambda tx: tx.workflows.bump(deltas))


async def test_wrong_counts_are_set_right(rig: Rig) -> None:
    made = await submit_flow(rig, {}, {"args": 1, "unblock": "manual"})
    right = await row_of(rig, made.known_workflow)
    await bump(rig, made.known_workflow, queued=-1, running=3, failed=1)
    reports = await rounds(rig, WatchdogLoop(rig.engine))
    assert [report.repaired for report in reports] == [0, 1, 0]
    assert (await row_of(rig, made.known_workflow)).counts == right.counts
    (bark,) = await barks(rig)
    assert "its counts do not match its jobs" in (bark.reason or "")


async def test_counts_that_hide_the_end_are_set_right_and_it_ends(rig: Rig) -> None:
    made = await submit_flow(rig, {})
    await bump(rig, made.known_workflow, running=1)
    await finish_all(await rig.agent())
    assert await state_of(rig, made.known_workflow) == "dispatching"
    await rounds(rig, WatchdogLoop(rig.engine))
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_a_workflow_with_nothing_open_ends(rig: Rig) -> None:
    made = await submit_flow(rig, {})
    await bump(rig, made.known_workflow, running=1)
    await finish_all(await rig.agent())
    await bump(rig, made.known_workflow, running=-1)  # right again, but nobody looked
    assert await state_of(rig, made.known_workflow) == "dispatching"
    assert [r.repaired for r in await rounds(rig, WatchdogLoop(rig.engine))] == [0, 1, 0]
    assert await state_of(rig, made.known_workflow) == "completed"


async def take_wait(rig: Rig, job: int) -> None:
    await rig.store.transact(lambda tx: tx.places.take_waits([job]))


async def test_a_blocked_job_whose_wait_is_gone_goes_on(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"}, {"after": ("a",)})
    await take_wait(rig, made.ids[1])
    agent = await rig.agent()
    await finish_all(agent)
    assert await rig.states(*made.ids) == ["completed", "blocked"]
    assert [r.repaired for r in await rounds(rig, WatchdogLoop(rig.engine))] == [0, 1, 0]
    assert await rig.state(made.ids[1]) == "queued"
    await finish_all(agent)
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_a_blocked_job_whose_dependency_failed_unheard_is_aborted(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"}, {"after": ("a",)})
    wait = (await rig.store.transact(lambda tx: tx.places.take_waits([made.ids[1]])))[0]
    await finish_all(await rig.agent(), frozenset(made.ids[:1]))
    await rig.store.transact(lambda tx: tx.places.add_waits([wait]))
    assert await rig.state(made.ids[1]) == "blocked"
    await rounds(rig, WatchdogLoop(rig.engine))
    assert await rig.state(made.ids[1]) == "aborted"
    assert await state_of(rig, made.known_workflow) == "failed"


async def test_a_blocked_job_that_counts_one_condition_too_many_goes_on(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"}, {"after": ("a",)})
    (wait,) = await rig.store.transact(lambda tx: tx.places.take_waits([made.ids[1]]))
    await rig.store.transact(lambda tx: tx.places.add_waits([wait._replace(unmet=2)]))
    agent = await rig.agent()
    await finish_all(agent)
    assert await rig.state(made.ids[1]) == "blocked"
    await rounds(rig, WatchdogLoop(rig.engine))
    assert await finish_all(agent) == 1
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_a_lost_intent_to_cancel_is_taken_up_again(rig: Rig) -> None:
    made = await submit_flow(rig, {}, {"args": 1})

    async def plant(work: Work) -> None:
        work.cancel_workflow(made.known_workflow, "stop", "ann")

    await rig.engine.run(plant)
    assert await state_of(rig, made.known_workflow) == "canceling"
    await rounds(rig, WatchdogLoop(rig.engine))
    assert await rig.states(*made.ids) == ["canceled", "canceled"]
    assert await state_of(rig, made.known_workflow) == "canceled"


async def test_what_comes_back_after_the_stall_timeout_is_canceled_and_logged(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"}, {"after": ("a",), "unblock": "manual"})
    agent, watchdog = await rig.agent(), WatchdogLoop(rig.engine)
    await finish_all(agent)
    await bump(rig, made.known_workflow, running=1)
    await rounds(rig, watchdog)
    assert len(await barks(rig)) == 1
    await bump(rig, made.known_workflow, running=1)
    await rounds(rig, watchdog)
    assert (
        await state_of(rig, made.known_workflow) == "dispatching"
    )  # repaired again, it is too early
    await rig.advance(rig.engine.config.stall_timeout_ms)
    await bump(rig, made.known_workflow, running=1)
    reports = await rounds(rig, watchdog)
    assert sum(report.canceled for report in reports) == 1
    assert await state_of(rig, made.known_workflow) == "canceled"
    assert await rig.state(made.ids[1]) == "canceled"
    last = (await barks(rig))[-1]
    told = json.loads(last.data or "{}")
    assert last.reason == (f"Workflow {made.workflow} canceled: its counts do not match its jobs")
    assert told["jobs"] == [made.ids[1]]
    assert [worker[1] for worker in told["workers"]] == [agent.name]
    assert any(event[1] == made.ids[1] for event in told["events"])
    assert {"counts", "recount", "waits"} <= told.keys()

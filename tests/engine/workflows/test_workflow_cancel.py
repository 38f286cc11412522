"""Canceling a workflow: nothing new starts, what runs is told, and it ends with the last."""

import asyncio

import pytest

from tests.engine.support.flows import row_of, state_of, submit_flow
from tests.engine.support.rig import SECOND, Rig
from windlass.domain.job.forms import Concurrency
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import Conflict, NotFound
from windlass.engine.loops.scheduling import SchedulingLoop
from windlass.engine.transaction.unit_of_work import Work
from windlass.engine.workflows import cancel_workflow
from windlass.messages.workflows import CanceledWorkflow
from windlass.ports.loop_time import give_way


async def test_jobs_that_wait_end_wherever_they_stand(rig: Rig) -> None:
    limit = Concurrency(key="db", max=1)
    made = await submit_flow(
        rig,
        {"name": "ready"},
        {"after": ("ready",)},
        {"unblock": "manual"},
        {"not_before": rig.now + 60 * SECOND},
        {"concurrency": limit},
        {"concurrency": limit},  # parked
        {"allow_failure": True},
    )
    done = await rig.engine.workflows.cancel(made.known_workflow, "no longer needed", "ann")
    assert (done.state, done.applied) == ("canceled", True)
    assert set(await rig.states(*made.ids)) == {"canceled"}
    snapshot = await rig.snapshot()
    places = (snapshot.ready, snapshot.waits, snapshot.due, snapshot.parked, snapshot.cascades)
    assert places == ((), (), (), (), ())
    assert {row.reason for row in snapshot.jobs} == {"no longer needed"}


async def test_the_scheduling_loop_runs_no_cascade_beside_the_task_that_calls_wait_for(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it held the only one, the task found none, and cancel returned too early."""
    engine = memory_rig.engine
    made = await submit_flow(memory_rig, {})
    begun, go_on, step = asyncio.Event(), asyncio.Event(), engine.cascades._step

    async def held() -> bool:
        begun.set()
        await go_on.wait()
        return await step()

    monkeypatch.setattr(engine.cascades, "_step", held)
    canceling = asyncio.ensure_future(engine.workflows.cancel(made.known_workflow))
    await begun.wait()
    a_round = asyncio.ensure_future(SchedulingLoop(engine).run_once(memory_rig.now))
    for _ in range(50):
        await give_way()
    state = await state_of(memory_rig, made.known_workflow)
    go_on.set()
    assert state == "canceling"
    assert (await canceling).state == "canceled"
    await a_round


async def test_the_log_says_who_and_why(rig: Rig) -> None:
    made = await submit_flow(rig, {})
    await rig.engine.workflows.cancel(made.known_workflow, "wrong branch", "ann")
    said = [(e.reason, e.actor) for e in await rig.events() if e.kind == EventKind.WORKFLOW]
    assert ("queued → canceling: wrong branch", "ann") in said
    (last,) = [e for e in await rig.events(made.ids[0]) if e.to == State.CANCELED.code]
    assert (last.reason, last.actor) == ("wrong branch", "ann")
    about = await rig.store.read(lambda tx: tx.workflows.about([made.known_workflow]))
    assert about[made.known_workflow].reason == "wrong branch"


async def test_what_is_assigned_is_taken_back_and_what_runs_is_told(rig: Rig) -> None:
    made = await submit_flow(rig, {}, {"args": 1})
    agent = await rig.agent()
    running = await agent.take_one()
    assigned = await agent.take_one(prefetch=True)
    done = await rig.engine.workflows.cancel(made.known_workflow)
    assert done.state == "canceling"
    assert await rig.states(running.job, assigned.job) == ["canceling", "canceled"]
    reply = await agent.sync()
    assert [(stop.job, stop.attempt) for stop in reply.cancel] == [(running.job, running.attempt)]
    assert await state_of(rig, made.known_workflow) == "canceling"
    await agent.finish(running, "canceled")
    assert await state_of(rig, made.known_workflow) == "canceled"
    assert (await row_of(rig, made.known_workflow)).finished_at == rig.now


async def test_it_is_canceled_when_the_lease_of_its_last_job_has_run_out(rig: Rig) -> None:
    made = await submit_flow(rig, {})
    agent = await rig.agent()
    await agent.take_one()
    await rig.engine.workflows.cancel(made.known_workflow)
    await rig.end_grace()
    await rig.pass_time(2 * rig.engine.config.heartbeat_timeout_ms)
    assert await rig.state(made.ids[0]) == "canceled"
    assert await state_of(rig, made.known_workflow) == "canceled"


async def test_a_job_that_completes_all_the_same_starts_nothing(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"}, {"after": ("a",)})
    agent = await rig.agent()
    running = await agent.take_one()
    await rig.engine.workflows.cancel(made.known_workflow)
    await agent.finish(running, "completed")
    assert await rig.states(*made.ids) == ["completed", "canceled"]
    assert await agent.take(5) == ()
    assert await state_of(rig, made.known_workflow) == "canceled"


async def test_saying_it_again_changes_nothing(rig: Rig) -> None:
    made = await submit_flow(rig, {})
    agent = await rig.agent()
    running = await agent.take_one()
    await rig.engine.workflows.cancel(made.known_workflow)
    events = len(await rig.events())
    again = await rig.engine.workflows.cancel(made.known_workflow, "again", "bob")
    assert (again.state, again.applied) == ("canceling", False)
    await agent.finish(running, "canceled")
    ended = await rig.engine.workflows.cancel(made.known_workflow)
    assert (ended.state, ended.applied) == ("canceled", False)
    assert len(await rig.events()) == events + 2  # the job's end, and the workflow's


async def test_jobs_outside_that_depend_on_it_are_aborted_or_satisfied(rig: Rig) -> None:
    made = await submit_flow(rig, {}, {"args": 1, "allow_failure": True})
    first, forgiven = made.ids
    aborted = await rig.submit(after=(first,))
    freed = await rig.submit(after=(forgiven,))
    any_end = await rig.submit(after_any=(first,))
    await rig.engine.workflows.cancel(made.known_workflow)
    assert await rig.states(aborted, freed, any_end) == ["aborted", "queued", "queued"]


async def test_other_workflows_are_left_alone(rig: Rig) -> None:
    one, two = await submit_flow(rig, {}), await submit_flow(rig, {})
    await rig.engine.workflows.cancel(one.known_workflow)
    assert await rig.states(*one.ids, *two.ids) == ["canceled", "queued"]
    assert await state_of(rig, two.known_workflow) == "queued"


async def test_nothing_can_be_added_or_retried_while_it_is_being_canceled(rig: Rig) -> None:
    made = await submit_flow(rig, {}, {"args": 1})
    agent = await rig.agent()
    failed = await agent.take_one()
    await agent.take_one()
    await agent.fail(failed)
    await rig.engine.workflows.cancel(made.known_workflow)
    with pytest.raises(Conflict, match="is being canceled") as refused:
        await rig.submit(workflow=made.workflow)
    assert refused.value.code == "workflow_canceling"
    with pytest.raises(Conflict, match="is being canceled"):
        await rig.engine.jobs.retry(failed.job)
    with pytest.raises(Conflict, match="is being canceled"):
        await rig.engine.workflows.retry(made.known_workflow)


async def test_an_unknown_workflow_is_named(rig: Rig) -> None:
    with pytest.raises(NotFound, match="workflow 99"):
        await rig.engine.workflows.cancel(99)


async def test_an_ended_one_is_answered(rig: Rig) -> None:
    made = await submit_flow(rig)
    done = await rig.engine.workflows.cancel(made.known_workflow)
    assert (done.state, done.applied) == ("completed", False)


async def test_many_jobs_are_canceled_in_chunks_and_claims_between_them_are_told(rig: Rig) -> None:
    count = 2_500
    group = await submit_flow(rig, *({"args": n} for n in range(count)))
    agent = await rig.agent(slots=3_000)
    canceling = asyncio.ensure_future(rig.engine.workflows.cancel(group.known_workflow))
    taken = await agent.take(50)
    await canceling
    mine = [job for job in taken if job.job in set(group.ids)]
    counts = (await row_of(rig, group.known_workflow)).counts
    assert counts[State.CANCELED.code] + counts[State.CANCELING.code] == count
    assert counts[State.CANCELING.code] <= len(mine)
    assert not (await rig.snapshot()).cascades


async def test_a_crash_in_the_middle_loses_nothing(rig: Rig) -> None:
    group = await submit_flow(rig, *({"args": n} for n in range(1_500)))
    agent = await rig.agent()
    running = await agent.take_one()

    # The command has committed and not one chunk is done.
    await rig.engine.run(lambda work: _only_the_intent(work, group.known_workflow))
    engine = await rig.restart()
    await engine.settled()
    assert await rig.state(running.job) == "canceling"
    counts = (await row_of(rig, group.known_workflow)).counts
    assert counts[State.CANCELED.code] == 1_499


async def _only_the_intent(work: Work, workflow: int) -> CanceledWorkflow:
    done = await cancel_workflow(work, workflow, "stop", "ann")
    await work.tx.workflows.add_cascades(work.cascades)
    work.cascades = []  # so that this engine does not hear of it
    return done

"""Groups of jobs that finish as one: counts and states."""

from tests.engine.support.agent import Agent
from tests.engine.support.rig import Rig
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.rows.events import EventKind
from windlass.domain.values.ids import WorkflowId


async def state(rig: Rig, workflow: int) -> WorkflowState:
    rows = {row.id: row for row in (await rig.snapshot()).workflows}
    return WorkflowState(rows[WorkflowId(workflow)].state)


async def finish_next(agent: Agent, outcome: str = "completed") -> None:
    await agent.finish(await agent.take_one(), outcome)  # type: ignore[arg-type]


async def test_it_is_queued_until_its_first_job_is_given_out(rig: Rig) -> None:
    group = (await rig.submit_all({}, {"args": 1}, workflow="w")).known_workflow
    assert await state(rig, group) is WorkflowState.QUEUED
    await (await rig.agent()).take_one()
    assert await state(rig, group) is WorkflowState.DISPATCHING


async def test_it_is_complete_when_all_its_jobs_are(rig: Rig) -> None:
    group = (await rig.submit_all({}, {"args": 1}, workflow="w")).known_workflow
    agent = await rig.agent()
    await finish_next(agent)
    assert await state(rig, group) is WorkflowState.DISPATCHING
    await finish_next(agent)
    assert await state(rig, group) is WorkflowState.COMPLETED
    (row,) = (await rig.snapshot()).workflows
    assert row.finished_at == rig.now


async def test_it_has_failed_when_one_job_has_and_the_rest_is_done(rig: Rig) -> None:
    group = (await rig.submit_all({}, {"args": 1}, workflow="w")).known_workflow
    agent = await rig.agent()
    await finish_next(agent, "failed")
    assert await state(rig, group) is WorkflowState.DISPATCHING
    await finish_next(agent)
    assert await state(rig, group) is WorkflowState.FAILED


async def test_a_failure_that_is_allowed_does_not_fail_it(rig: Rig) -> None:
    group = (
        await rig.submit_all({"allow_failure": True}, {"args": 1}, workflow="w")
    ).known_workflow
    agent = await rig.agent()
    await finish_next(agent, "failed")
    await finish_next(agent)
    assert await state(rig, group) is WorkflowState.COMPLETED


async def test_an_abort_counts_as_a_failure(rig: Rig) -> None:
    jobs = {"name": "a"}, {"after": ("a",)}
    group = (await rig.submit_all(*jobs, workflow="w")).known_workflow
    await finish_next(await rig.agent(), "failed")
    await rig.engine.settled()
    assert await state(rig, group) is WorkflowState.FAILED


async def test_its_counts_follow_every_transition(rig: Rig) -> None:
    submitted = await rig.submit_all(
        {"name": "a"}, {"after": ("a",)}, {"unblock": "manual"}, workflow="w"
    )
    (row,) = (await rig.snapshot()).workflows
    assert (row.counts[State.QUEUED.code], row.counts[State.BLOCKED.code]) == (1, 2)
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), "failed", failure="network")
    (row,) = (await rig.snapshot()).workflows
    assert row.counts[State.RETRYING.code] == 1
    await rig.engine.jobs.cancel(submitted.ids)
    (row,) = (await rig.snapshot()).workflows
    assert (row.counts[State.CANCELED.code], sum(row.counts)) == (3, 3)


async def test_a_workflow_without_jobs_is_complete_at_once(rig: Rig) -> None:
    group = (await rig.submit_all(workflow="w")).known_workflow
    assert await state(rig, group) is WorkflowState.COMPLETED


async def test_its_states_are_events(rig: Rig) -> None:
    await rig.submit_all({}, workflow="w")
    await finish_next(await rig.agent())
    said = [e.reason for e in await rig.events() if e.kind == EventKind.WORKFLOW]
    assert said == ["submitted as w", "queued → dispatching", "dispatching → completed"]


async def test_two_workflows_in_one_batch_of_reports_are_counted_apart(rig: Rig) -> None:
    one = (await rig.submit_all({}, workflow="one")).known_workflow
    two = (await rig.submit_all({"args": 1}, {"args": 2}, workflow="two")).known_workflow
    agent = await rig.agent()
    first, second, _ = await agent.take(3)
    await agent.finish(first)
    await agent.finish(second)
    assert [await state(rig, group) for group in (one, two)] == [
        WorkflowState.COMPLETED, WorkflowState.DISPATCHING,
    ]  # fmt: skip

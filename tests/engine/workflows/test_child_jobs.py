"""Jobs that a running job adds to its own workflow: fenced, and repeatable by key."""

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.flows import finish_all, row_of, state_of, submit_flow
from tests.engine.support.rig import Rig
from tests.support.specs import spec_of
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound
from windlass.messages.sync import Assignment
from windlass.ports.gateway import Holder


def holder_of(agent: Agent, job: Assignment) -> Holder:
    return Holder(agent.id, agent.incarnation, job.job, job.attempt)


def child(**fields: object) -> JobSpec:
    return spec_of(**{"task": "shell", **fields})


async def test_children_join_the_workflow_and_take_the_priority_of_their_parent(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "plan", "priority": 3}, namespace="default")
    await rig.engine.jobs.adjust_priority(made.ids[0], 2)
    agent = await rig.agent()
    plan = await agent.take_one()
    jobs = [child(name="a"), child(after=("a",), priority="+1"), child(priority="-1")]
    done = await rig.engine.jobs.submit_children(holder_of(agent, plan), jobs, "k")
    facts = await rig.store.read(lambda tx: tx.jobs.read(done.ids))
    assert [facts[job].base for job in done.ids] == [5, 6, 4]
    assert {fact.workflow for fact in facts.values()} == {made.workflow}
    assert await rig.states(*done.ids) == ["queued", "blocked", "queued"]
    await agent.finish(plan)
    assert await state_of(rig, made.known_workflow) == "dispatching"
    assert await finish_all(agent) == 3
    assert await state_of(rig, made.known_workflow) == "completed"
    assert (await row_of(rig, made.known_workflow)).run == 1


async def test_a_key_is_answered_to_later_attempts_and_successors_too(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "plan", "retries": 0})
    agent = await rig.agent()
    plan = await agent.take_one()
    first = await rig.engine.jobs.submit_children(holder_of(agent, plan), [child()], "k")
    again = await rig.engine.jobs.submit_children(holder_of(agent, plan), [child()], "k")
    assert (again.ids, again.applied) == (first.ids, (False,))
    other = await rig.engine.jobs.submit_children(holder_of(agent, plan), [child()], "other")
    assert other.ids != first.ids
    await agent.fail(plan)
    await rig.engine.jobs.retry(made.ids[0])
    jobs = {job.job: job for job in await agent.take(10)}
    anew = jobs[max(jobs)]
    assert anew.job not in {plan.job, *first.ids, *other.ids}
    answered = await rig.engine.jobs.submit_children(holder_of(agent, anew), [child()], "k")
    assert (answered.ids, answered.applied) == (first.ids, (False,))
    mine = child(submitted_by=f"job {anew.job}")  # as servers note it
    answered = await rig.engine.jobs.submit_children(holder_of(agent, anew), [mine], "k")
    assert (answered.ids, answered.workflow) == (first.ids, made.workflow)
    with pytest.raises(Conflict) as refused:
        await rig.engine.jobs.submit_children(holder_of(agent, anew), [child(args=1)], "k")
    assert refused.value.code == "key_conflict"


async def test_an_attempt_that_was_given_away_adds_nothing(rig: Rig) -> None:
    await submit_flow(rig, {"name": "plan"})
    agent = await rig.agent()
    plan = await agent.take_one()
    holder = holder_of(agent, plan)
    for stale in (
        holder._replace(attempt=holder.attempt + 1), holder._replace(worker=99),
        holder._replace(incarnation=holder.incarnation + 1),
    ):  # fmt: skip
        with pytest.raises(Conflict) as refused:
            await rig.engine.jobs.submit_children(stale, [child()], "k")
        assert refused.value.code == "lease_lost"
    await agent.finish(plan)
    with pytest.raises(Conflict, match="is not held"):
        await rig.engine.jobs.submit_children(holder, [child()], "k")
    with pytest.raises(NotFound):
        await rig.engine.jobs.submit_children(holder._replace(job=99), [child()], "k")
    assert len((await rig.snapshot()).jobs) == 1


async def test_a_job_that_is_told_to_stop_adds_nothing(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "plan"})
    agent = await rig.agent()
    plan = await agent.take_one()
    await rig.engine.workflows.cancel(made.known_workflow)
    with pytest.raises(Conflict, match="told to stop"):
        await rig.engine.jobs.submit_children(holder_of(agent, plan), [child()], "k")
    await agent.finish(plan, "canceled")
    assert await state_of(rig, made.known_workflow) == "canceled"


async def test_without_a_workflow_children_stand_alone(rig: Rig) -> None:
    parent = await rig.submit(namespace="team")
    agent = await rig.agent()
    running = await agent.take_one()
    assert running.job == parent
    done = await rig.engine.jobs.submit_children(holder_of(agent, running), [child()], "k")
    facts = await rig.store.read(lambda tx: tx.jobs.read(done.ids))
    assert [fact.workflow for fact in facts.values()] == [None]
    assert await rig.engine.jobs.namespace_of(done.ids[0]) == "team"


async def test_no_children_are_no_request(memory_rig: Rig) -> None:
    with pytest.raises(InvalidInput, match="at least one job"):
        await memory_rig.engine.jobs.submit_children(Holder(1, 1, 1, 1), [], "k")

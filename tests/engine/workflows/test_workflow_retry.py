"""Trying a workflow again: what failed in it, or all of it as a new one."""

import msgspec
import pytest

from tests.engine.support.flows import finish_all, row_of, state_of, submit_flow
from tests.engine.support.rig import SECOND, Rig
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import Conflict, NotFound
from windlass.messages.sync import Finished
from windlass.ports.gateway import Holder


async def newest_states(rig: Rig, workflow: int) -> dict[str, str]:
    """The states of the jobs that no other has superseded, by name."""
    facts = await rig.store.read(lambda tx: tx.workflows.jobs_of(workflow, 0, 100_000))
    specs = await rig.store.read(lambda tx: tx.jobs.specs([fact.id for fact in facts]))
    names = {job: msgspec.json.decode(body, type=JobSpec).name for job, body in specs.items()}
    newest = [fact.id for fact in facts if not fact.superseded_by]
    return {str(names[job]): str(await rig.state(job)) for job in newest}


async def test_what_failed_is_tried_again_and_what_was_aborted_comes_back(rig: Rig) -> None:
    made = await submit_flow(
        rig,
        {"name": "a"}, {"name": "b", "after": ("a",)}, {"name": "c", "after": ("b",)},
        {"name": "d"}, {"name": "e", "after": ("d", "b")},
    )  # fmt: skip
    agent = await rig.agent()
    await finish_all(agent, frozenset(made.ids[:1]))
    assert await state_of(rig, made.known_workflow) == "failed"
    done = await rig.engine.workflows.retry(made.known_workflow, actor="ann")
    assert (done.id, done.applied) == (made.workflow, True)
    assert await newest_states(rig, made.known_workflow) == {
        "a": "queued", "b": "blocked", "c": "blocked", "d": "completed", "e": "blocked",
    }  # fmt: skip
    row = await row_of(rig, made.known_workflow)
    assert (await state_of(rig, made.known_workflow), row.run) == ("dispatching", 2)
    await finish_all(agent)
    assert await state_of(rig, made.known_workflow) == "completed"
    assert set((await newest_states(rig, made.known_workflow)).values()) == {"completed"}


async def test_the_log_says_who_asked_for_it(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"})
    await finish_all(await rig.agent(), frozenset(made.ids))
    await rig.engine.workflows.retry(made.known_workflow, actor="ann")
    said = [(e.reason, e.actor) for e in await rig.events() if e.kind == EventKind.WORKFLOW]
    assert ("retrying 1 failed job", "ann") in said
    (superseded,) = [e for e in await rig.events() if e.kind == EventKind.SUPERSEDE]
    assert superseded.actor == "ann"


async def test_nothing_is_tried_again_where_nothing_failed(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"}, {"name": "b", "allow_failure": True})
    await finish_all(await rig.agent(), frozenset(made.ids[1:]))
    assert await state_of(rig, made.known_workflow) == "completed"
    assert not (await rig.engine.workflows.retry(made.known_workflow)).applied
    assert (await row_of(rig, made.known_workflow)).run == 1


async def test_a_canceled_workflow_goes_on_where_it_stopped(rig: Rig) -> None:
    made = await submit_flow(
        rig, {"name": "a"}, {"name": "b", "after": ("a",)}, {"name": "c", "after": ("b",)}
    )
    agent = await rig.agent()
    await finish_all(agent, most=1)
    await rig.engine.workflows.cancel(made.known_workflow)
    assert await state_of(rig, made.known_workflow) == "canceled"
    await rig.engine.workflows.retry(made.known_workflow)
    states = await newest_states(rig, made.known_workflow)
    assert states == {"a": "completed", "b": "queued", "c": "blocked"}
    await finish_all(agent)
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_a_cause_that_was_retried_before_comes_first_whatever_its_number(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"}, {"name": "b", "after": ("a",)})
    agent = await rig.agent()
    await rig.engine.jobs.cancel(made.ids[1:])
    await finish_all(agent, frozenset(made.ids[:1]))
    again = (await rig.engine.jobs.retry(made.ids[0])).id
    await finish_all(agent, frozenset([again]))
    assert await newest_states(rig, made.known_workflow) == {"a": "failed", "b": "canceled"}
    await rig.engine.workflows.retry(made.known_workflow)
    assert await newest_states(rig, made.known_workflow) == {"a": "queued", "b": "blocked"}
    await finish_all(agent)
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_a_job_that_an_operator_rejected_is_asked_for_again(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a", "unblock": "manual"})
    await rig.engine.jobs.unblock(made.ids[0], accept=False)
    assert await state_of(rig, made.known_workflow) == "failed"
    await rig.engine.workflows.retry(made.known_workflow)
    assert await newest_states(rig, made.known_workflow) == {"a": "blocked"}


async def test_a_retry_may_be_put_off(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"})
    agent = await rig.agent()
    await finish_all(agent, frozenset(made.ids))
    await rig.engine.workflows.retry(made.known_workflow, not_before=rig.now + 5 * SECOND)
    assert await agent.take(1) == ()
    await rig.advance(6 * SECOND)
    await rig.cleanup()
    assert await finish_all(agent) == 1
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_many_failed_jobs_are_tried_again_in_steps_that_survive_a_crash(rig: Rig) -> None:
    jobs = [{"name": f"j{n}", "retries": 0} for n in range(250)]
    made = await submit_flow(rig, *jobs)
    agent = await rig.agent(slots=300)
    await finish_all(agent, frozenset(made.ids))
    await rig.engine.workflows.retry(made.known_workflow)
    assert list((await newest_states(rig, made.known_workflow)).values()).count("queued") == 250
    assert await finish_all(agent) == 250
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_a_lost_worker_never_aborts_what_comes_after(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"}, {"name": "b", "after": ("a",)})
    agent = await rig.agent()
    for _ in range(2):
        job = await agent.take_one()
        await agent.fail(job, FailureClass.WORKER_LOST)
        assert await rig.states(*made.ids) == ["retrying", "blocked"]
        assert await state_of(rig, made.known_workflow) == "dispatching"
        await rig.advance(20 * SECOND)
        await rig.cleanup()
    await finish_all(agent)
    assert await rig.states(*made.ids) == ["completed", "completed"]
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_from_scratch_is_a_new_workflow_with_the_same_jobs(rig: Rig) -> None:
    outside = await rig.submit()
    made = await submit_flow(
        rig,
        {"name": "a", "labels": {"x": "1"}, "key": "k"},
        {"name": "b", "after": ("a", outside), "priority": 5},
        {"name": "c", "after_any": ("b",)},
        priority=3, fail_fast=True,
    )  # fmt: skip
    agent = await rig.agent()
    await finish_all(agent, frozenset(made.ids[:1]))
    await rig.engine.workflows.retry(made.known_workflow)
    await finish_all(agent)
    assert await state_of(rig, made.known_workflow) == "completed"
    done = await rig.engine.workflows.retry(made.known_workflow, failed=False, actor="ann")
    new, applied = done.id, done.applied
    assert (new, applied) == (made.known_workflow + 1, True)
    assert await newest_states(rig, new) == {"a": "queued", "b": "blocked", "c": "blocked"}
    facts = await rig.store.read(lambda tx: tx.workflows.jobs_of(new, 0, 10))
    assert [fact.base for fact in facts] == [3, 5, 3]
    details = await rig.engine.workflows.details(new)
    assert (details.supersedes, details.submitted_by) == (made.workflow, "ann")
    assert (await row_of(rig, new)).flags == (await row_of(rig, made.known_workflow)).flags
    await finish_all(agent)
    assert await state_of(rig, new) == "completed"
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_from_scratch_needs_an_end(rig: Rig) -> None:
    made = await submit_flow(rig, {})
    with pytest.raises(Conflict, match="has not ended"):
        await rig.engine.workflows.retry(made.known_workflow, failed=False)
    with pytest.raises(NotFound):
        await rig.engine.workflows.retry(99, failed=False)
    with pytest.raises(NotFound):
        await rig.engine.workflows.retry(99)


async def test_from_scratch_leaves_out_what_jobs_of_the_workflow_had_added(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "plan"})
    agent = await rig.agent()
    plan = await agent.take_one()
    holder = Holder(agent.id, agent.incarnation, plan.job, plan.attempt)
    part = JobSpec(task="shell", name="part", submitted_by=f"job {plan.job}")
    added = await rig.engine.jobs.submit_children(holder, [part], "k")
    await agent.finish(plan)
    await finish_all(agent, frozenset(added.ids))
    await rig.engine.workflows.retry(made.known_workflow)
    await finish_all(agent)
    assert await state_of(rig, made.known_workflow) == "completed"
    new = (await rig.engine.workflows.retry(made.known_workflow, failed=False)).id
    assert await newest_states(rig, new) == {"plan": "queued"}


async def test_retrying_the_failure_takes_along_what_it_stopped_under_fail_fast(rig: Rig) -> None:
    made = await submit_flow(
        rig,
        {"name": "a", "retries": 0}, {"name": "b", "after": ("a",)},
        {"name": "c", "requires": ("never == 1",)}, {"name": "d", "after": ("c",)},
        fail_fast=True,
    )  # fmt: skip
    agent = await rig.agent()
    await finish_all(agent, frozenset(made.ids[:1]))
    assert await state_of(rig, made.known_workflow) == "failed"
    assert (await newest_states(rig, made.known_workflow))["c"] == "canceled"
    await rig.engine.jobs.retry(made.ids[0], actor="ann")
    assert await newest_states(rig, made.known_workflow) == {
        "a": "queued", "b": "blocked", "c": "queued", "d": "blocked",
    }  # fmt: skip


async def test_while_another_failure_stands_nothing_more_is_taken_along(rig: Rig) -> None:
    one = {"retries": 0}
    made = await submit_flow(
        rig, {"name": "a", **one}, {"name": "b", **one},
        {"name": "c", "requires": ("never == 1",)}, fail_fast=True,
    )  # fmt: skip
    agent = await rig.agent(slots=2)
    # In one message, for a failure that came later would end as canceled.
    both = tuple(Finished(job.job, job.attempt, "failed") for job in await agent.take(2))
    await agent.sync(finished=both)
    await rig.engine.settled()
    await rig.engine.jobs.retry(made.ids[0])
    assert await newest_states(rig, made.known_workflow) == {
        "a": "queued", "b": "failed", "c": "canceled",
    }  # fmt: skip

"""Workflows with keys, priorities and fail_fast, and jobs that join them later."""

from typing import Any

import pytest

from tests.engine.support.flows import finish_all, row_of, state_of, submit_flow
from tests.engine.support.rig import Rig
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.workflow_state import Details
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.engine.submit.submission import WorkflowSpec


async def test_a_key_is_answered_with_the_workflow_that_has_not_ended(rig: Rig) -> None:
    jobs = {"name": "late", "after": ("early",)}, {"name": "early"}
    first = await submit_flow(rig, *jobs, key="nightly")
    again = await submit_flow(rig, *jobs, key="nightly")
    assert (again.workflow, again.ids, again.applied) == (
        first.workflow, first.ids, (False, False),
    )  # fmt: skip
    assert len((await rig.snapshot()).jobs) == 2
    assert len((await rig.snapshot()).workflows) == 1


async def test_after_its_end_a_key_makes_a_new_one(rig: Rig) -> None:
    first = await submit_flow(rig, {}, key="nightly")
    await finish_all(await rig.agent())
    second = await submit_flow(rig, {}, key="nightly")
    assert second.workflow != first.workflow
    third = await submit_flow(rig, {}, key="nightly")
    assert third.workflow == second.workflow


async def test_keys_of_other_namespaces_are_other_keys(rig: Rig) -> None:
    first = await submit_flow(rig, {}, key="k")
    second = await submit_flow(rig, {"namespace": "team"}, key="k", namespace="team")
    assert first.workflow != second.workflow


async def test_a_submission_said_again_is_answered_even_after_the_end(rig: Rig) -> None:
    spec, jobs = WorkflowSpec(name="w", key="k"), [JobSpec(task="shell")]
    first = await rig.engine.submit(jobs, spec, key="said")
    await finish_all(await rig.agent())
    again = await rig.engine.submit(jobs, spec, key="said")
    assert (again.workflow, again.ids, again.applied) == (first.workflow, first.ids, (False,))


async def test_a_key_with_more_jobs_than_it_has_is_refused(rig: Rig) -> None:
    await submit_flow(rig, {}, key="k")
    with pytest.raises(Conflict, match="which was submitted with other jobs or options") as refused:
        await submit_flow(rig, {}, {"args": 1}, key="k")
    assert refused.value.code == "key_conflict"


@pytest.mark.parametrize(
    ("jobs", "options"),
    [
        (({"args": 2}, {}), {}),
        (({"args": 1},), {}),
        (({"args": 1}, {"priority": 3}), {}),
        (({"args": 1}, {}), {"priority": 3}),
        (({"args": 1}, {}), {"details": Details(labels={"a": "b"})}),
    ],
)
async def test_a_key_with_other_jobs_or_options_is_a_conflict_as_for_jobs(
    rig: Rig, jobs: tuple[dict[str, Any], ...], options: dict[str, Any]
) -> None:
    first = await submit_flow(rig, {"args": 1}, {}, key="k")
    with pytest.raises(Conflict, match=r"workflow\.key 'k' is used by workflow \d+, which"):
        await submit_flow(rig, *jobs, key="k", **options)
    again = await submit_flow(rig, {"args": 1}, {}, key="k")
    assert (again.workflow, again.ids) == (first.workflow, first.ids)


async def test_a_key_is_that_of_the_work_whoever_submits_it(rig: Rig) -> None:
    ann, bob = ({"submitted_by": who, "key": "j"} for who in ("ann", "bob"))
    assert await rig.submit(**ann) == await rig.submit(**bob)
    flows = [
        await submit_flow(
            rig, {"submitted_by": who, "delay": 60}, key="k", details=Details(submitted_by=who)
        )
        for who in ("ann", "bob")
    ]
    assert flows[0].workflow == flows[1].workflow


async def test_its_priority_is_the_base_of_jobs_that_have_none(rig: Rig) -> None:
    made = await submit_flow(
        rig, {}, {"priority": 1}, {"priority": "+2"}, {"priority": "-1"}, {"priority": "low"},
        priority=10,
    )  # fmt: skip
    facts = await rig.store.read(lambda tx: tx.jobs.read(made.ids))
    assert [facts[job].base for job in made.ids] == [10, 1, 12, 9, -1]
    later = await rig.submit(workflow=made.workflow)
    assert (await rig.store.read(lambda tx: tx.jobs.read([later])))[later].base == 10


async def test_a_child_is_placed_relative_to_its_parent(rig: Rig) -> None:
    parent = await rig.submit(priority=5)
    await rig.engine.jobs.adjust_priority(parent, 2)
    children = await rig.submit_all(
        {"parent": parent}, {"parent": parent, "priority": "+1"},
        {"parent": parent, "priority": "-8"}, {"parent": parent, "priority": 3},
    )  # fmt: skip
    facts = await rig.store.read(lambda tx: tx.jobs.read(children.ids))
    assert [facts[job].base for job in children.ids] == [7, 8, -1, 3]


async def test_jobs_join_a_workflow_until_it_ends_and_may_open_it_again(rig: Rig) -> None:
    made = await submit_flow(rig, {})
    agent = await rig.agent()
    await rig.submit(workflow=made.workflow)
    assert await finish_all(agent) == 2
    assert await state_of(rig, made.known_workflow) == "completed"
    with pytest.raises(Conflict) as refused:
        await rig.submit(workflow=made.workflow)
    assert refused.value.code == "workflow_ended"
    late = JobSpec(task="shell", workflow=made.workflow)
    await rig.engine.submit([late], reopen=True)
    row = await row_of(rig, made.known_workflow)
    assert (await state_of(rig, made.known_workflow), row.run) == ("dispatching", 2)
    await finish_all(agent)
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_a_job_of_another_namespace_may_not_join(rig: Rig) -> None:
    made = await submit_flow(rig, {})
    with pytest.raises(InvalidInput, match="that of its workflow"):
        await rig.submit(workflow=made.workflow, namespace="other")
    with pytest.raises(InvalidInput, match="that of its workflow"):
        await submit_flow(rig, {"namespace": "other"})


async def test_a_failure_stops_a_workflow_that_fails_fast(rig: Rig) -> None:
    made = await submit_flow(
        rig, {"args": 0}, {"args": 1}, {"args": 2}, {"name": "m", "unblock": "manual"},
        fail_fast=True,
    )  # fmt: skip
    agent = await rig.agent()
    first, running = await agent.take_one(), await agent.take_one()
    await agent.fail(first)
    await rig.engine.settled()
    assert await rig.states(*made.ids) == ["failed", "canceling", "canceled", "canceled"]
    assert await state_of(rig, made.known_workflow) == "dispatching"
    with pytest.raises(Conflict) as refused:
        await rig.submit(workflow=made.workflow)
    assert refused.value.code == "workflow_failing"
    await agent.finish(running, "canceled")
    assert await state_of(rig, made.known_workflow) == "failed"


async def test_a_failure_that_is_forgiven_stops_nothing(rig: Rig) -> None:
    made = await submit_flow(rig, {"allow_failure": True}, {"args": 1}, fail_fast=True)
    agent = await rig.agent()
    await agent.fail(await agent.take_one())
    await rig.engine.settled()
    assert await rig.states(*made.ids) == ["failed", "queued"]
    await finish_all(agent)
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_without_it_independent_branches_go_on(rig: Rig) -> None:
    made = await submit_flow(rig, {"name": "a"}, {"after": ("a",)}, {"args": 1})
    agent = await rig.agent()
    assert await finish_all(agent, frozenset(made.ids[:1])) == 2
    assert await rig.states(*made.ids) == ["failed", "aborted", "completed"]
    assert await state_of(rig, made.known_workflow) == "failed"


async def test_a_workflow_that_failed_fast_can_be_retried_and_fails_fast_again(rig: Rig) -> None:
    made = await submit_flow(rig, {"args": 0}, {"args": 1}, fail_fast=True)
    agent = await rig.agent()
    for _ in range(2):
        await agent.fail(await agent.take_one())
        await rig.engine.settled()
        assert await state_of(rig, made.known_workflow) == "failed"
        assert (await rig.engine.workflows.retry(made.known_workflow)).applied
    assert await finish_all(agent) == 2
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_what_a_workflow_was_submitted_with_is_kept(rig: Rig) -> None:
    details = Details(
        submitted_by="ann", labels={"team": "a"}, template="release@3",
        parameters={"version": "1.2"}, on_end=[{"submit": "cleanup"}],
    )  # fmt: skip
    made = await submit_flow(rig, {}, details=details)
    assert await rig.engine.workflows.details(made.known_workflow) == details


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ""}, "workflow.name"),
        ({"key": "a\nb"}, "workflow.key"),
        ({"priority": "urgent"}, "workflow.priority"),
        ({"details": Details(labels={"": "x"})}, "workflow.labels"),
        ({"details": Details(parameters={"x": "\0"})}, "NUL"),
        ({"details": Details(parameters={"x": "a" * 2_000_000})}, "bytes"),
    ],
)
async def test_a_workflow_that_cannot_be_kept_is_refused(
    memory_rig: Rig, fields: dict[str, object], expected: str
) -> None:
    with pytest.raises(InvalidInput, match=expected):
        await submit_flow(memory_rig, {}, **fields)
    assert not (await memory_rig.snapshot()).jobs

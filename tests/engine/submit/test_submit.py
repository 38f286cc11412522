"""Submitting: single jobs, batches, keys, names, all or nothing."""

from typing import Any

import msgspec
import pytest

from tests.engine.support.rig import HOUR, Rig
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict, InvalidInput


async def test_a_plain_job_is_queued(rig: Rig) -> None:
    job = await rig.submit()
    assert await rig.moves(job) == [(None, "queued")]


async def test_a_batch_keeps_its_order(rig: Rig) -> None:
    submitted = await rig.submit_all({"args": 1}, {"args": 2}, {"args": 3})
    assert list(submitted.ids) == sorted(submitted.ids)
    agent = await rig.agent()
    assert tuple(job.job for job in await agent.take(3)) == submitted.ids


async def test_an_empty_submission_is_refused(rig: Rig) -> None:
    with pytest.raises(InvalidInput, match="expected jobs to be at least one job, got 0"):
        await rig.engine.submit([])


async def test_the_worker_gets_the_job_as_it_was_submitted(rig: Rig) -> None:
    await rig.submit("shell", args={"argv": ["ls", "é", "\N{SNOWMAN}"]}, labels={"a": "b"})
    job = await (await rig.agent()).take_one()
    assert bytes(job.spec) == (
        b'{"task":"shell","args":{"argv":["ls","\xc3\xa9","\xe2\x98\x83"]},"labels":{"a":"b"}}'
    )


TRICKY = (
    'a","after":["b', '"after":[', 'after":[', "\\", '\\"after":[', "after", "]}", "é\N{SNOWMAN}",
)  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"args": {"after": ["x"], "z": '"after":['}},
        {"after_any": ("other",)},
        {"allow_failure": True},
        {"priority": 3, "labels": {"after": "["}},
        {"retry_on": ("timeout",)},
    ],
)
async def test_names_are_stored_as_ids_and_all_else_as_it_was(
    rig: Rig, more: dict[str, Any]
) -> None:
    """Whatever text a name has, and whatever fields stand before and behind the names."""
    jobs = [{"name": name} for name in (*TRICKY, "other")]
    last = {"name": "last", "after": TRICKY, **more}
    made = await rig.submit_all(*jobs, last, workflow="w")
    stored = msgspec.json.decode((await rig.record(made.ids[-1])).spec, type=JobSpec)
    told = {"after": made.ids[: len(TRICKY)], "workflow": made.workflow}
    if "after_any" in more:
        told["after_any"] = made.ids[len(TRICKY) : -1]
    assert stored == JobSpec(**{"task": "shell", **last, **told})


async def test_a_key_with_the_same_body_names_the_same_job(rig: Rig) -> None:
    first = await rig.submit_all({"key": "k", "args": 1})
    again = await rig.submit_all({"key": "k", "args": 1})
    assert (again.ids, again.applied) == (first.ids, (False,))
    assert first.applied == (True,)
    assert len((await rig.snapshot()).jobs) == 1


async def test_a_key_with_another_body_is_a_conflict(rig: Rig) -> None:
    job = await rig.submit(key="k", args=1)
    with pytest.raises(
        Conflict, match=f"is used by job {job}, which was submitted with other arguments"
    ) as refused:
        await rig.submit(key="k", args=2)
    assert refused.value.code == "key_conflict"


async def test_a_key_belongs_to_its_namespace(rig: Rig) -> None:
    first = await rig.submit(key="k", namespace="a")
    assert await rig.submit(key="k", namespace="b") != first


async def test_a_key_twice_in_one_submission_makes_one_job(rig: Rig) -> None:
    submitted = await rig.submit_all({"key": "k"}, {"key": "k"})
    assert submitted.ids[0] == submitted.ids[1]
    assert submitted.applied == (True, False)


async def test_a_key_twice_in_one_submission_with_two_bodies_is_a_conflict(rig: Rig) -> None:
    with pytest.raises(Conflict, match="belongs to another job of this submission"):
        await rig.submit_all({"key": "k", "args": 1}, {"key": "k", "args": 2})


async def test_a_conflicting_key_writes_nothing_of_its_batch(rig: Rig) -> None:
    await rig.submit(key="k", args=1)
    with pytest.raises(Conflict):
        await rig.submit_all({"args": "new"}, {"key": "new"}, {"key": "k", "args": 2})
    snapshot = await rig.snapshot()
    assert len(snapshot.jobs) == 1
    assert [row.key for row in snapshot.keys] == ["k"]


async def test_a_known_job_may_be_named_by_new_ones(rig: Rig) -> None:
    build = {"key": "build", "name": "build"}
    known = (await rig.submit_all(build)).ids[0]
    submitted = await rig.submit_all(build, {"after": ("build",)})
    assert submitted.ids[0] == known
    agent = await rig.agent()
    await agent.finish(await agent.take_one())
    assert await rig.state(submitted.ids[1]) == "queued"


async def test_names_may_be_used_before_they_are_given(rig: Rig) -> None:
    submitted = await rig.submit_all({"name": "last", "after": ("first",)}, {"name": "first"})
    assert await rig.states(*submitted.ids) == ["blocked", "queued"]
    assert submitted.ids[1] < submitted.ids[0]


async def test_a_name_is_not_shared_between_submissions(rig: Rig) -> None:
    await rig.submit(name="build")
    with pytest.raises(InvalidInput, match="the name of a job in this submission"):
        await rig.submit(after=("build",))


async def test_a_name_given_twice_cannot_be_depended_on(rig: Rig) -> None:
    with pytest.raises(InvalidInput, match=r"jobs\[1\]\.name to be unique"):
        await rig.submit_all({"name": "a"}, {"name": "a"}, {"after": ("a",)})


async def test_a_name_given_twice_is_fine_while_nobody_refers_to_it(rig: Rig) -> None:
    submitted = await rig.submit_all({"name": "a"}, {"name": "a"})
    assert await rig.states(*submitted.ids) == ["queued", "queued"]


async def test_a_planned_job_waits_for_its_time(rig: Rig) -> None:
    job = await rig.submit(not_before=rig.now + HOUR)
    agent = await rig.agent()
    assert await agent.take() == ()
    await rig.advance(HOUR)
    assert [j.job for j in await agent.take()] == [job]


async def test_a_time_in_the_past_is_now(rig: Rig) -> None:
    job = await rig.submit(not_before=rig.now - HOUR)
    assert [j.job for j in await (await rig.agent()).take()] == [job]


async def test_one_bad_job_keeps_the_whole_batch_out(rig: Rig) -> None:
    with pytest.raises(InvalidInput, match=r"jobs\[1\]\.task"):
        await rig.engine.submit([JobSpec(task="fine"), JobSpec(task=""), JobSpec(task="fine")])
    assert (await rig.snapshot()).jobs == ()
    assert await rig.events() == []


async def test_jobs_join_an_existing_workflow(rig: Rig) -> None:
    group = (await rig.submit_all({}, workflow="build")).workflow
    job = await rig.submit(workflow=group)
    assert (await rig.record(job)).facts.workflow == group


async def test_an_unknown_workflow_is_refused(rig: Rig) -> None:
    with pytest.raises(InvalidInput, match="the id of an existing workflow, got 99"):
        await rig.submit(workflow=99)


async def test_an_ended_workflow_takes_no_more_jobs(rig: Rig) -> None:
    group = (await rig.submit_all({}, workflow="build")).workflow
    agent = await rig.agent()
    await agent.finish(await agent.take_one())
    with pytest.raises(Conflict) as refused:
        await rig.submit(workflow=group)
    assert refused.value.code == "workflow_ended"


async def test_a_child_takes_its_parents_effective_priority(rig: Rig) -> None:
    parent = await rig.submit(priority=3)
    await rig.engine.jobs.adjust_priority(parent, 4)
    child = await rig.submit(parent=parent)
    assert (await rig.record(child)).facts.base == 7


async def test_a_childs_own_priority_goes_first(rig: Rig) -> None:
    parent = await rig.submit(priority=3)
    child = await rig.submit(parent=parent, priority=1)
    assert (await rig.record(child)).facts.base == 1


async def test_an_unknown_parent_is_refused(rig: Rig) -> None:
    with pytest.raises(InvalidInput, match=r"jobs\[0\]\.parent"):
        await rig.submit(parent=77)

"""`run_if`: jobs that run or are skipped because of how others ended."""

import asyncio

import pytest

from tests.engine.support.flows import finish_all, state_of, submit_flow
from tests.engine.support.rig import MINUTE, Rig
from tests.engine.workflows.test_workflow_retry import newest_states
from tests.support.specs import spec_of
from windlass.domain.job.run_if import Ended, holds
from windlass.domain.lifecycle.states import State
from windlass.domain.values.errors import InvalidInput
from windlass.engine.submit.submission import WorkflowSpec

DEPLOY = (
    {"name": "test"},
    {"name": "deploy", "after": ("test",)},
    {"name": "good", "after": ("test",), "run_if": "success()"},
    {"name": "bad", "after": ("test",), "run_if": "failure()"},
    {"name": "told", "after": ("bad",)},
    {"name": "clean", "after": ("deploy", "bad"), "run_if": "always()"},
)


async def test_a_failure_starts_what_waits_for_it_and_skips_what_waits_for_success(
    rig: Rig,
) -> None:
    made = await submit_flow(rig, *DEPLOY)
    await finish_all(await rig.agent(), frozenset(made.ids[:1]))
    assert await newest_states(rig, made.known_workflow) == {
        "test": "failed", "deploy": "aborted", "good": "skipped", "bad": "completed",
        "told": "completed", "clean": "completed",
    }  # fmt: skip
    assert await state_of(rig, made.known_workflow) == "failed"
    skipped = await rig.record(made.ids[2])
    assert skipped.reason == "Its condition does not hold: success()"


async def test_what_is_skipped_skips_what_waits_for_it_and_does_not_fail_the_workflow(
    rig: Rig,
) -> None:
    made = await submit_flow(rig, *DEPLOY, {"name": "forgiven", "after": ("told",),
                                            "allow_failure": True})  # fmt: skip
    await finish_all(await rig.agent())
    assert await newest_states(rig, made.known_workflow) == {
        "test": "completed", "deploy": "completed", "good": "completed", "bad": "skipped",
        "told": "skipped", "clean": "completed", "forgiven": "skipped",
    }  # fmt: skip
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_a_retry_decides_again(rig: Rig) -> None:
    made = await submit_flow(rig, *DEPLOY)
    agent = await rig.agent()
    await finish_all(agent, frozenset(made.ids[:1]))
    assert (await rig.engine.workflows.retry(made.known_workflow)).applied
    assert (await newest_states(rig, made.known_workflow))["good"] == "blocked"
    await finish_all(agent)
    states = await newest_states(rig, made.known_workflow)
    assert (states["test"], states["deploy"], states["good"]) == ("completed",) * 3
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_a_job_that_was_queued_already_is_decided_again_after_a_retry(rig: Rig) -> None:
    made = await submit_flow(rig, DEPLOY[0], DEPLOY[3])
    agent = await rig.agent()
    await finish_all(agent, frozenset(made.ids[:1]), most=1)
    await rig.engine.settled()
    assert await rig.state(made.ids[1]) == "queued"
    await rig.engine.jobs.retry(made.ids[0], actor="ann")
    await rig.engine.settled()
    assert await rig.state(made.ids[1]) == "blocked"
    await finish_all(agent)
    assert await rig.state(made.ids[1]) == "skipped"


async def test_jobs_that_ended_before_decide_at_once_and_so_does_a_long_wait(rig: Rig) -> None:
    ended = await rig.submit()
    agent = await rig.agent()
    await finish_all(agent, frozenset([ended]))
    late = await rig.submit_all(
        {"after": (ended,), "run_if": "failure()"},
        {"after": (ended,), "run_if": f"state('{ended}') == 'completed'"},
    )
    await rig.engine.settled()
    assert [await rig.state(job) for job in late.ids] == ["queued", "skipped"]
    made = await submit_flow(rig, DEPLOY[0], DEPLOY[2])
    await rig.advance(90 * MINUTE)
    await finish_all(await rig.agent("second"))
    assert await newest_states(rig, made.known_workflow) == {
        "test": "completed", "good": "completed"
    }  # fmt: skip


async def test_one_that_ended_before_and_is_retried_meanwhile_is_waited_for_by_nobody(
    rig: Rig,
) -> None:
    ended = await rig.submit()
    agent = await rig.agent()
    await finish_all(agent, frozenset([ended]))
    made = await rig.submit_all(
        {"name": "other"}, {"after": (ended, "other"), "run_if": "failure()"}
    )
    await rig.engine.jobs.retry(ended, actor="ann")
    other = next(job for job in await agent.take(100) if job.job == made.ids[0])
    await agent.finish(other)
    async with asyncio.timeout(60):  # or the decision is put off again and again
        await rig.engine.settled()
    assert await rig.state(made.ids[1]) == "queued"  # the end of then counts
    assert (await rig.snapshot()).cascades == ()


async def test_a_crash_before_the_decision_loses_nothing(rig: Rig) -> None:
    made = await submit_flow(rig, DEPLOY[0], DEPLOY[3])
    agent = await rig.agent()
    rig.engine.cascades.stop()
    (job,) = await agent.take(1)
    await agent.finish(job, "failed")
    assert await rig.state(made.ids[1]) in ("blocked", "queued")
    await rig.restart()
    await rig.scheduling()
    await rig.engine.settled()
    assert await rig.state(made.ids[1]) == "queued"


OK = Ended(1, "a", State.COMPLETED, False, {"version": "2", "deploy": True})
BAD = Ended(2, "b[1]", State.FAILED, False)
ALLOWED = Ended(3, "c", State.FAILED, True)
SKIPPED = Ended(4, "d", State.SKIPPED, True)


@pytest.mark.parametrize(
    ("condition", "jobs", "expected"),
    [
        ("success()", [OK, ALLOWED], True),
        ("success()", [OK, SKIPPED], False),
        ("failure()", [OK, SKIPPED, ALLOWED], False),
        ("failure()", [OK, BAD], True),
        ("failure('a')", [OK, BAD], False),
        ("failure('b')", [OK, BAD], True),
        ("failure('b[*]', 'a')", [OK, BAD], True),
        ("success('a') and failure('b')", [OK, BAD], True),
        ("state('c') == 'failed'", [ALLOWED, BAD], True),
        ("state('d') == 'skipped' or false", [SKIPPED], True),
        ("output('a', 'version') == 2", [OK], True),
        ("output('a', 'version') == 2", [OK, BAD], False),
        ("output('a', 'version') == 2 and always()", [OK, BAD], True),
        ("output('b', 'version') == ''", [BAD], False),
        ("always() and output('b', 'version') != '2'", [BAD], True),
    ],
)
def test_what_conditions_mean(condition: str, jobs: list[Ended], expected: bool) -> None:
    assert holds(condition, jobs) is expected


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"run_if": "failed()"}, "did you mean failure"),
        ({"run_if": "jobs.a.state == 'x'"}, "one of success()"),
        ({"run_if": "failure('tset')"}, "did you mean test"),
        ({"run_if": "state()"}, "state() with 1 quoted name"),
        ({"run_if": "failure("}, "quoted names in failure()"),
        ({"run_if": ""}, "a value at its end"),
        ({"run_if": 5}, "a condition"),
        ({"run_if": "always()", "unblock": "manual"}, "without unblock: manual"),
        ({"run_if": "failure()", "after": ()}, "beside jobs in after or after_any"),
    ],
)
async def test_a_wrong_condition_is_refused(memory_rig: Rig, fields: dict[str, object],
                                            said: str) -> None:  # fmt: skip
    own = {"task": "shell", "after": ("test",), **fields}
    jobs = [spec_of(task="shell", name="test"), spec_of(**own)]
    with pytest.raises(InvalidInput) as refused:
        await memory_rig.engine.submit(jobs, WorkflowSpec(name="w"))
    assert said in refused.value.message

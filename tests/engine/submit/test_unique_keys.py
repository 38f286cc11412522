"""Unique keys: one job or workflow has a key at a time, until it ends or as long as it says."""

import asyncio
from typing import Any

import pytest

from tests.engine.support.filing import Desk
from tests.engine.support.flows import finish_all, submit_flow
from tests.engine.support.rig import HOUR, MINUTE, Rig
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.workflow_state import Details
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.engine.loops.retention import RetentionLoop
from windlass.engine.submit.submission import WorkflowSpec
from windlass.engine.verify.check import verify

KEYED = JobSpec(task="t", key="k")
DAY = 24 * HOUR


async def done(rig: Rig) -> None:
    """Runs every job to its end."""
    await finish_all(await rig.agent())


async def test_a_job_has_its_key_until_it_ends(rig: Rig) -> None:
    first = await rig.submit(key="k")
    assert await rig.submit(key="k") == first
    await done(rig)
    second = await rig.submit(key="k")
    assert second != first
    assert await rig.submit(key="k") == second
    assert await verify(rig.store, rig.engine.config) == []


async def test_an_ended_job_does_not_refuse_another_body(rig: Rig) -> None:
    first = await rig.submit(key="k", args=1)
    with pytest.raises(Conflict):
        await rig.submit(key="k", args=2)
    await done(rig)
    assert await rig.submit(key="k", args=2) != first


async def test_a_job_has_its_key_for_a_time(rig: Rig) -> None:
    first = await rig.submit(key="k", key_for="1h")
    await done(rig)
    await rig.advance(HOUR - 1)
    assert await rig.submit(key="k") == first  # the one who has the key decides
    await rig.advance(1)
    assert await rig.submit(key="k") != first


async def test_a_time_that_has_passed_does_not_free_the_key_of_an_open_job(memory_rig: Rig) -> None:
    first = await memory_rig.submit(key="k", key_for="1m")
    await memory_rig.advance(HOUR)
    assert await memory_rig.submit(key="k", key_for="1m") == first


async def test_a_workflow_has_its_key_for_a_time(rig: Rig) -> None:
    first = await flow(rig, key_for=3600.0)
    await done(rig)
    await rig.advance(HOUR - 1)
    again = await flow(rig)
    assert (again.workflow, again.ids, again.applied) == (first.workflow, first.ids, (False,))
    await rig.advance(1)
    assert (await flow(rig)).workflow != first.workflow


async def flow(rig: Rig, key_for: float | str | None = None) -> Any:
    return await submit_flow(rig, {}, key="k", details=Details(key_for=key_for))


@pytest.mark.parametrize("what", ["job", "workflow"])
async def test_a_key_for_ever_outlives_retention(memory_rig: Rig, what: str) -> None:
    rig = memory_rig
    await rig.restart(Config(job_retention_ms=DAY, event_retention_ms=DAY))
    other = await rig.submit()
    spec = WorkflowSpec(name="w", key="k", details=Details(key_for="forever"))
    jobs = [JobSpec(task="t", key="k", key_for="forever")]
    first = await rig.engine.submit(*((jobs,) if what == "job" else ([JobSpec(task="t")], spec)))
    await done(rig)
    await rig.advance(400 * DAY)
    await RetentionLoop(rig.engine, Desk(rig).blobs).run_once(rig.now)
    assert [row.facts.id for row in (await rig.snapshot()).jobs] == [*first.ids]
    assert other not in first.ids
    again = await rig.engine.submit(*((jobs,) if what == "job" else ([JobSpec(task="t")], spec)))
    assert (again.ids, again.workflow) == (first.ids, first.workflow)


async def test_a_retry_takes_the_key_over_and_keeps_it_as_long(rig: Rig) -> None:
    agent = await rig.agent()
    old = await rig.submit(key="k", key_for="forever")
    await agent.finish(await agent.take_one(), "failed")
    new = (await rig.engine.jobs.retry(old)).id
    await agent.finish(await agent.take_one())
    await rig.advance(DAY)
    assert await rig.submit(key="k", key_for="forever") == new


async def test_a_workflow_whose_key_another_has_is_not_opened_again(rig: Rig) -> None:
    agent = await rig.agent()
    first = await flow(rig)
    await agent.finish(await agent.take_one(), "failed")
    second = await flow(rig)
    with pytest.raises(Conflict, match="has the key 'k' of workflow") as refused:
        await rig.engine.jobs.retry(first.ids[0])
    assert refused.value.code == "key_taken"
    late = JobSpec(task="t", workflow=first.workflow)
    with pytest.raises(Conflict, match="has the key"):
        await rig.engine.submit([late], reopen=True)
    await agent.finish(await agent.take_one())
    await rig.engine.jobs.retry(first.ids[0])
    assert (await flow(rig)).workflow == first.workflow != second.workflow


async def test_a_submission_told_again_names_the_same_jobs_wherever_their_keys_are(
    rig: Rig,
) -> None:
    holder = await rig.submit(key="k", task="t")
    jobs = [JobSpec(task="t", args=1), KEYED, JobSpec(task="t", key="own")]
    first = await rig.engine.submit(jobs, key="said")
    assert (first.ids[1], first.applied) == (holder, (True, False, True))
    await done(rig)
    assert await rig.submit(key="k") != holder
    assert await rig.submit(key="own") != first.ids[2]
    count = len((await rig.snapshot()).jobs)
    again = await rig.engine.submit(jobs, key="said")
    assert (again.ids, again.applied) == (first.ids, (False, False, False))
    assert len((await rig.snapshot()).jobs) == count


async def test_of_many_who_want_a_free_key_at_once_one_gets_it(rig: Rig) -> None:
    old = await rig.submit(key="k")
    await done(rig)
    answers = await asyncio.gather(*(rig.engine.submit([KEYED]) for _ in range(12)))
    assert len({answer.ids for answer in answers} - {(old,)}) == 1
    assert sum(answer.applied[0] for answer in answers) == 1
    assert len((await rig.snapshot()).jobs) == 2


async def test_of_a_retry_and_a_submit_at_once_one_gets_the_key(rig: Rig) -> None:
    agent = await rig.agent()
    old = await rig.submit(key="k")
    await agent.finish(await agent.take_one(), "failed")
    told = await asyncio.gather(
        *(rig.engine.submit([KEYED]) for _ in range(4)),
        *(rig.engine.jobs.retry(old) for _ in range(4)),
        return_exceptions=True,
    )
    assert all(isinstance(answer, tuple | Conflict) for answer in told)
    assert len((await rig.snapshot()).jobs) == 2
    assert await verify(rig.store, rig.engine.config) == []


@pytest.mark.parametrize(
    "options",
    [{"key_for": "1h"}, {"key": "k", "key_for": "soon"}, {"key": "k", "key_for": 0}],
)
async def test_a_time_without_sense_is_refused(memory_rig: Rig, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="key_for"):
        await memory_rig.engine.submit([JobSpec(task="t", **options)])
    details = Details(key_for=options["key_for"])
    with pytest.raises(InvalidInput, match="key_for"):
        await submit_flow(memory_rig, {}, key=options.get("key"), details=details)
    assert await memory_rig.submit(key="k", key_for=float(5 * MINUTE))

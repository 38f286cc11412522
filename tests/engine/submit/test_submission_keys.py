"""A submission that is said again is answered as before, and nothing is repeated."""

import asyncio

import pytest

from tests.engine.support.rig import Rig
from windlass.domain.job.forms import Concurrency
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.engine.submit.submission import WorkflowSpec

PLAIN = [JobSpec(task="t", args=n) for n in range(3)]
TIED = [
    JobSpec(task="t", name="last", after=("first",)),
    JobSpec(task="t", name="first", key="own"),
    JobSpec(task="t", name="middle", after=("first",), concurrency=Concurrency("c", 1)),
]


async def count(rig: Rig) -> int:
    return len((await rig.store.snapshot()).jobs)


@pytest.mark.parametrize("jobs", [PLAIN, TIED])
async def test_the_same_ids_are_told_again(rig: Rig, jobs: list[JobSpec]) -> None:
    first = await rig.engine.submit(jobs, key="k")
    await rig.submit()  # so that ids would differ
    again = await rig.engine.submit(jobs, key="k")
    assert again.ids == first.ids
    assert (first.applied, again.applied) == ((True,) * 3, (False,) * 3)
    assert await count(rig) == 4


async def test_a_workflow_is_told_again(rig: Rig) -> None:
    flow = WorkflowSpec(name="flow")
    first = await rig.engine.submit(TIED, flow, "k")
    again = await rig.engine.submit(TIED, flow, "k")
    assert (again.ids, again.workflow) == (first.ids, first.workflow)
    assert first.workflow


async def test_other_jobs_under_the_same_key_are_a_conflict(rig: Rig) -> None:
    await rig.engine.submit(PLAIN, key="k")
    for others in (PLAIN[:2], TIED):
        with pytest.raises(Conflict) as refused:
            await rig.engine.submit(others, key="k")
        assert refused.value.code == "key_conflict"
    with pytest.raises(Conflict):
        await rig.engine.submit(PLAIN, WorkflowSpec(name="flow"), "k")
    assert await count(rig) == 3


async def test_a_key_of_a_job_is_another_thing(rig: Rig) -> None:
    job = await rig.submit(key="k")
    told = await rig.engine.submit(PLAIN, key="k")
    assert job not in told.ids
    assert told.applied == (True,) * 3


async def test_many_at_once_make_each_submission_once(rig: Rig) -> None:
    """Also where some share a transaction, and a conflict is one caller's alone."""
    calls = [rig.engine.submit(PLAIN, key=f"k{n % 4}") for n in range(16)]
    calls.append(rig.engine.submit(PLAIN[:1], key="k0"))
    calls += [rig.engine.submit(PLAIN[:1]) for _ in range(3)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    told = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len({answer.ids for answer in told[:16]}) == 4
    assert sum(all(answer.applied) for answer in told[:16]) == 4
    assert isinstance(answers[16], Conflict)
    assert await count(rig) == 4 * 3 + 3


async def test_nothing_is_no_submission_to_name(rig: Rig) -> None:
    with pytest.raises(InvalidInput):
        await rig.engine.submit([], WorkflowSpec(name="flow"), "k")
    with pytest.raises(InvalidInput):
        await rig.engine.submit(PLAIN, key="a\x00b")

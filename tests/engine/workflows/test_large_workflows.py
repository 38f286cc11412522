"""Workflows of up to 100,000 jobs (in the long form), wide and deep; smaller ones on PostgreSQL."""

from typing import Any

import pytest

from tests.engine.support.flows import row_of, state_of, submit_flow
from tests.engine.support.rig import Rig
from tests.support.forms import by_form
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State
from windlass.engine.loops.scheduling import SchedulingLoop
from windlass.engine.submit.submission import WorkflowSpec
from windlass.messages.sync import Finished

pytestmark = pytest.mark.slow

WIDE = {"memory": 20_000, "sqlite": by_form(20_000, 100_000), "postgres": 3_000}
DEEP = {"memory": 10_000, "sqlite": 10_000, "postgres": 300}

ABORTED = State.ABORTED.code
BLOCKED = State.BLOCKED.code


async def test_a_fan_in_fires_once_when_its_last_job_is_done(rig: Rig) -> None:
    width = WIDE[rig.kind]
    names = tuple(f"n{n}" for n in range(width))
    jobs = [JobSpec(task="shell", name=name) for name in names]
    join = JobSpec(task="shell", name="join", after=names)
    made = await rig.engine.submit([*jobs, join], WorkflowSpec(name="w"))
    agent = await rig.agent(slots=2_000)
    ran = 0
    while given := await agent.take(1_000):
        await agent.sync(finished=tuple(Finished(job.job, job.attempt) for job in given))
        await rig.engine.settled()
        ran += len(given)
        if ran < width:
            assert (await row_of(rig, made.known_workflow)).counts[BLOCKED] == 1
    assert ran == width + 1
    assert await rig.moves(made.ids[-1]) == [
        (None, "blocked"), ("blocked", "queued"), ("queued", "assigned"),
        ("assigned", "running"), ("running", "completed"),
    ]  # fmt: skip
    assert await state_of(rig, made.known_workflow) == "completed"


async def test_the_failure_of_one_aborts_all_that_depend_on_it(rig: Rig) -> None:
    width = WIDE[rig.kind]
    jobs = [JobSpec(task="shell", name="a")]
    jobs += [JobSpec(task="shell", after=("a",))] * width
    made = await rig.engine.submit(jobs, WorkflowSpec(name="w"))
    agent = await rig.agent()
    await agent.fail(await agent.take_one())
    await rig.engine.settled()
    assert (await row_of(rig, made.known_workflow)).counts[ABORTED] == width
    assert await state_of(rig, made.known_workflow) == "failed"


async def test_a_cascade_continues_where_an_engine_that_stopped_left_it(rig: Rig) -> None:
    width = WIDE[rig.kind]
    jobs = [JobSpec(task="shell", name="a")]
    jobs += [JobSpec(task="shell", after=("a",))] * width
    made = await rig.engine.submit(jobs, WorkflowSpec(name="w"))
    agent = await rig.agent()
    await agent.fail(await agent.take_one())
    rig.engine.stop_waiting()
    await SchedulingLoop(rig.engine).run_once(rig.now)
    await rig.engine.close()
    assert (await row_of(rig, made.known_workflow)).counts[ABORTED] < width
    await rig.restart()
    await rig.engine.settled()
    assert (await row_of(rig, made.known_workflow)).counts[ABORTED] == width


async def test_a_failure_runs_down_a_chain_of_ten_thousand(rig: Rig) -> None:
    depth = DEEP[rig.kind]
    chain: list[dict[str, Any]] = [{"name": "n0"}]
    chain += [{"name": f"n{n}", "after": (f"n{n - 1}",)} for n in range(1, depth)]
    made = await submit_flow(rig, *chain)
    agent = await rig.agent()
    await agent.fail(await agent.take_one())
    await rig.engine.settled()
    assert (await row_of(rig, made.known_workflow)).counts[ABORTED] == depth - 1
    assert await state_of(rig, made.known_workflow) == "failed"


async def test_a_chain_runs_through_one_job_at_a_time(rig: Rig) -> None:
    depth = DEEP[rig.kind] // 50
    chain: list[dict[str, Any]] = [{"name": "n0"}]
    chain += [{"name": f"n{n}", "after": (f"n{n - 1}",)} for n in range(1, depth)]
    made = await submit_flow(rig, *chain)
    agent = await rig.agent()
    for job in made.ids:
        given = await agent.take(5)
        assert [each.job for each in given] == [job]
        await agent.finish(given[0])
    assert await state_of(rig, made.known_workflow) == "completed"

"""`explain WORKER`: why it is idle."""

import pytest

from tests.engine.support.rig import Rig
from windlass.domain.job.forms import Concurrency
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.values.errors import NotFound


async def test_with_nothing_to_do_it_says_so(rig: Rig) -> None:
    agent = await rig.agent("w", slots=2)
    found = await rig.engine.explain.worker(agent.id)
    assert (found.worker, found.status, found.slots, found.held) == ("w", "idle", 2, 0)
    assert found.summary == "2 of 2 slots free: no job is ready to run"
    assert found.work == ()


async def test_what_it_cannot_run_is_listed_with_the_clause(rig: Rig) -> None:
    agent = await rig.agent("w", metadata={"system:gpus": 0})
    for _ in range(3):
        await rig.submit("train", requires=("gpus>=1",))
    await rig.submit(queue="batch")
    await rig.engine.queues.pause("batch")
    found = await rig.engine.explain.worker(agent.id)
    assert found.summary == "100 of 100 slots free: jobs are ready, but none that it can run"
    assert sorted(one.text for one in found.work) == [
        "1 job of shell in queue batch: queue batch is paused",
        "3 jobs of train in queue default: needs gpus ≥ 1, has 0",
    ]


async def test_jobs_it_could_have_come_first(rig: Rig) -> None:
    agent = await rig.agent("w")
    await rig.submit(requires=("zone==eu",))
    await rig.submit()
    found = await rig.engine.explain.worker(agent.id)
    assert (
        found.summary
        == "100 of 100 slots free: there are jobs for it, which it gets at its next sync"
    )
    assert [one.runnable for one in found.work] == [True, False]


async def test_status_and_slots_come_before_everything_else(rig: Rig) -> None:
    agent = await rig.agent("w", slots=1)
    await rig.submit()
    await agent.take_one()
    found = await rig.engine.explain.worker(agent.id)
    assert found.status == "busy"
    assert found.summary == "takes no further job: no slot is free (1 of 1 in use)"
    await rig.engine.workers.set_status(agent.id, WorkerStatus.DRAINING, "maintenance")
    found = await rig.engine.explain.worker(agent.id)
    assert found.summary.endswith("takes no jobs: draining (maintenance)")


async def test_jobs_beyond_their_limit_are_not_forgotten(rig: Rig) -> None:
    agent = await rig.agent("w")
    await rig.submit(concurrency=Concurrency("one"))
    await agent.take_one()
    await rig.submit(concurrency=Concurrency("one"))
    found = await rig.engine.explain.worker(agent.id)
    assert "held back by 1 concurrency limit" in found.summary


async def test_other_namespaces_are_only_hinted_at(memory_rig: Rig) -> None:
    agent = await memory_rig.agent("w", metadata={"namespaces": ["mine"]})
    await memory_rig.submit(namespace="theirs", task="secret")
    found = await memory_rig.engine.explain.worker(agent.id, lambda name: name == "mine")
    assert found.work == ()
    assert "jobs of other namespaces" in found.summary


async def test_a_worker_that_is_not_there_is_refused_by_name(memory_rig: Rig) -> None:
    with pytest.raises(NotFound, match="worker 9 does not exist"):
        await memory_rig.engine.explain.worker(9)

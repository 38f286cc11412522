"""`explain`: why a job waits, in the words of the functions that decide it."""

import pytest

from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.explain.explanation import Explanation
from windlass.domain.job.forms import Concurrency
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.values.errors import InvalidInput, NotFound

GIB = 1024**3


def kinds(found: Explanation) -> list[str]:
    return [one.kind for one in found.waiting_for]


def actions(found: Explanation) -> list[str]:
    return [] if found.smallest_change is None else [s.action for s in found.smallest_change.steps]


async def test_the_exact_clause_is_named_for_each_worker(rig: Rig) -> None:
    await rig.agent("build-3", metadata={"system:memory": 8 * GIB})
    job = await rig.submit(requires=("memory>=16GiB",))
    found = await rig.engine.explain.job(job)
    (worker,) = found.workers
    assert worker.text == "worker build-3: needs memory ≥ 16 GiB, has 8 GiB"
    assert (worker.clause, worker.needs, worker.has) == (
        "memory>=16GiB",
        "memory ≥ 16 GiB",
        "8 GiB",
    )
    assert not worker.runnable
    assert kinds(found) == ["no_worker"]
    assert found.smallest_change is not None
    assert found.smallest_change.text == "add a worker like build-3 with memory ≥ 16 GiB"
    assert found.smallest_change.steps[0].metadata == {"system:memory": 16 * GIB}


async def test_alike_workers_are_one_group_whatever_else_they_report(rig: Rig) -> None:
    for number in range(5):
        said = {"system:memory": GIB, "system:hostname": f"host-{number}"}
        await rig.agent(f"small-{number}", metadata=said)
    await rig.agent("large", metadata={"system:memory": 4 * GIB})
    job = await rig.submit(requires=("memory>=4GiB",))
    found = await rig.engine.explain.job(job)
    assert [(w.worker, w.group, w.count, w.runnable) for w in found.workers] == [
        ("large", None, 1, True),
        (None, "small-0, small-1, small-2 and 2 more", 5, False),
    ]
    assert found.waiting_for == ()
    assert found.smallest_change is None
    assert found.summary == "queued: it starts as soon as a free worker asks for it"


async def test_without_any_worker_it_says_so(rig: Rig) -> None:
    job = await rig.submit(requires=("zone==eu",))
    found = await rig.engine.explain.job(job)
    assert kinds(found) == ["no_worker"]
    assert found.summary == "queued: waits for a worker: none is known"
    assert found.smallest_change is not None
    assert found.smallest_change.text == "start a worker with zone = eu"


async def test_a_busy_fleet_and_the_jobs_ahead_are_told(rig: Rig) -> None:
    agent = await rig.agent("only", slots=1)
    await rig.submit()
    await agent.take_one()
    first, second = [await rig.submit() for _ in range(2)]
    assert (await rig.engine.explain.job(first)).ahead == 0
    found = await rig.engine.explain.job(second)
    assert (found.ahead, found.ahead_more) == (1, False)
    assert kinds(found) == ["busy", "ahead"]
    assert found.workers[0].text == "worker only: no slot is free (1 of 1 in use)"
    assert actions(found) == ["add_worker"]


async def test_jobs_that_its_workers_cannot_run_are_not_ahead_of_it(rig: Rig) -> None:
    await rig.agent("plain")
    await rig.submit(requires=("gpus>=1",), priority=10)
    await rig.submit(queue="asleep", priority=10)
    await rig.engine.queues.pause("asleep")
    await rig.submit(priority=10)
    job = await rig.submit()
    assert (await rig.engine.explain.job(job)).ahead == 1


async def test_a_paused_queue_is_named_with_the_way_out(rig: Rig) -> None:
    await rig.agent()
    job = await rig.submit(queue="batch")
    await rig.engine.queues.pause("batch")
    found = await rig.engine.explain.job(job)
    assert kinds(found) == ["paused"]
    assert found.smallest_change is not None
    assert found.smallest_change.steps[0].command == "windlass queues resume batch"
    assert found.workers[0].runnable


@pytest.mark.parametrize(
    ("status", "action"),
    [(WorkerStatus.DRAINING, "enable_worker"), (WorkerStatus.DISABLED, "enable_worker"),
     (WorkerStatus.OFFLINE, "start_worker"), (WorkerStatus.PENDING_APPROVAL, "approve_worker")],
)  # fmt: skip
async def test_a_worker_that_takes_no_jobs_is_named(
    rig: Rig, status: WorkerStatus, action: str
) -> None:
    agent = await rig.agent("sleeper")
    job = await rig.submit()
    await rig.engine.workers.set_status(agent.id, status, "by hand")
    found = await rig.engine.explain.job(job)
    assert kinds(found) == ["no_worker"]
    assert found.workers[0].has == f"{status.name.lower()} (by hand)"
    assert actions(found) == [action]


async def test_a_limit_names_who_holds_its_slots(rig: Rig) -> None:
    agent = await rig.agent()
    holder = await rig.submit(concurrency=Concurrency("repo-42"))
    await agent.take_one()
    job = await rig.submit(concurrency=Concurrency("repo-42"))
    found = await rig.engine.explain.job(job)
    (limit,) = found.limits
    assert limit.text == f"concurrency key repo-42 (1 of 1 in use, held by job {holder})"
    assert limit.binding
    assert kinds(found) == ["limit"]
    assert found.smallest_change is not None
    assert found.smallest_change.steps[0].job == holder


async def test_a_job_parked_behind_one_of_its_key_waits_for_the_limit(rig: Rig) -> None:
    await rig.agent()
    await rig.submit(concurrency=Concurrency("repo-42"))
    job = await rig.submit(concurrency=Concurrency("repo-42"))
    found = await rig.engine.explain.job(job)
    assert kinds(found) == ["limit"]
    assert found.limits[0].used == 0


async def test_backoff_and_planned_times_tell_what_is_left(rig: Rig) -> None:
    agent = await rig.agent()
    failing = await rig.submit()
    await agent.fail(await agent.take_one(), FailureClass.NETWORK)
    await rig.advance(2 * SECOND)
    found = await rig.engine.explain.job(failing)
    assert found.state == "retrying"
    assert kinds(found) == ["backoff"]
    assert "3 s left" in found.waiting_for[0].text
    planned = await rig.submit(not_before=rig.now + 10 * MINUTE)
    found = await rig.engine.explain.job(planned)
    assert (found.state, kinds(found)) == ("queued", ["not_before"])
    assert "10 min left" in found.waiting_for[0].text
    assert actions(found) == ["wait"]


async def test_dependencies_are_followed_to_the_root_cause(rig: Rig) -> None:
    await rig.agent()
    done = await rig.submit_all(
        {"name": "a", "queue": "batch"},
        {"name": "b", "after": ("a",)},
        {"name": "c", "after": ("b",)},
        {"name": "d", "after": ("c",)},
    )
    a, b, c, d = done.ids
    await rig.engine.queues.pause("batch")
    found = await rig.engine.explain.job(d)
    assert found.state == "blocked"
    (waiting,) = found.waiting_for
    assert (waiting.kind, waiting.job) == ("dependency", c)
    assert waiting.because == (
        f"job {c} waits for job {b}",
        f"job {b} waits for job {a}",
        f"job {a} waits for queue batch, which is paused",
    )
    assert actions(found) == ["resume_queue"]
    assert found.summary.endswith(f"job {a} waits for queue batch, which is paused")


async def test_a_running_dependency_is_the_cause_by_itself(rig: Rig) -> None:
    agent = await rig.agent("w")
    done = await rig.submit_all({"name": "a"}, {"name": "b", "after": ("a",)})
    await agent.take_one()
    found = await rig.engine.explain.job(done.ids[1])
    assert found.waiting_for[0].because == (f"job {done.ids[0]} is running on worker w",)
    assert actions(found) == []


async def test_an_operator_may_be_what_it_waits_for(rig: Rig) -> None:
    await rig.agent()
    job = await rig.submit(unblock="manual")
    behind = await rig.submit(after=(job,))
    found = await rig.engine.explain.job(job)
    assert kinds(found) == ["operator"]
    assert found.smallest_change is not None
    assert found.smallest_change.steps[0].command == f"windlass unblock {job}"
    assert (await rig.engine.explain.job(behind)).waiting_for[0].because == (
        f"job {job} waits for an operator to accept it",
    )


async def test_a_worker_that_handed_it_back_is_passed_over_for_a_while(rig: Rig) -> None:
    agent = await rig.agent("w")
    job = await rig.submit()
    await agent.release(await agent.take_one(prefetch=True), "no disk")
    await rig.advance(MINUTE)
    await rig.engine.due_jobs.move()
    found = await rig.engine.explain.job(job)
    assert found.workers[0].clause == "excluded"
    assert "handed it back and may get it again in 9 min" in str(found.workers[0].has)


async def test_jobs_that_do_not_wait_say_what_they_do(rig: Rig) -> None:
    agent = await rig.agent("w")
    job = await rig.submit()
    taken = await agent.take_one()
    found = await rig.engine.explain.job(job)
    assert found.summary.startswith("running on worker w since ")
    assert (found.waiting_for, found.workers) == ((), ())
    await agent.finish(taken)
    assert (await rig.engine.explain.job(job)).summary.startswith("completed at ")


async def test_jobs_that_are_not_there_are_refused_by_name(memory_rig: Rig) -> None:
    job = await memory_rig.submit(namespace="team")
    with pytest.raises(NotFound, match="job 77 does not exist"):
        await memory_rig.engine.explain.job(77)
    with pytest.raises(NotFound):
        await memory_rig.engine.explain.job(job, lambda namespace: namespace == "other")
    with pytest.raises(InvalidInput):
        await memory_rig.engine.explain.job(-1)

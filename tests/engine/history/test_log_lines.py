"""The lines of seed 002, to the letter, from events that the real engine wrote."""

from datetime import UTC, datetime

import pytest

from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.events import Event, EventKind, WorkerName, render
from windlass.engine.history.events import EventLines, WorkerNames, read_new


async def lines(rig: Rig) -> list[str]:
    """The whole log as a server writes it."""
    said: list[str] = []
    events, _ = await read_new(rig.store, 0)
    await EventLines(WorkerNames(rig.store), lambda line: said.append(line.text)).write(events)
    return said


async def lines_with(rig: Rig, tag: str) -> list[str]:
    return [line for line in await lines(rig) if line.startswith(f"[{tag}]")]


async def test_a_jobs_way_from_submit_to_completion(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent("worker-1")
    await agent.finish(await agent.take_one())
    assert await lines_with(rig, "FSM") == [
        f"[FSM] Job {job}: NEW → QUEUED (reason: Submitted)",
        f"[FSM] Job {job}: QUEUED → ASSIGNED (reason: Assigned to worker worker-1)",
        f"[FSM] Job {job}: ASSIGNED → RUNNING (reason: Started on worker worker-1)",
        f"[FSM] Job {job}: RUNNING → COMPLETED (reason: Completed on worker worker-1)",
    ]


async def test_a_dead_worker_with_its_node_and_the_silence(rig: Rig) -> None:
    await rig.end_grace()
    await rig.submit()
    agent = await rig.agent("worker-1", metadata={"system:hostname": "node-name"})
    await agent.take_one()
    await rig.pass_time(90 * SECOND)
    await rig.advance(10 * SECOND + 417)
    await rig.health()
    assert [line for line in await lines_with(rig, "Health") if "dead" in line] == [
        "[Health] Worker worker-1 (node-name) dead - no heartbeat for 1m40s (threshold: 1m30s)"
    ]


async def test_a_node_without_a_known_name_is_called_like_its_worker(rig: Rig) -> None:
    await rig.end_grace()
    await rig.agent("worker-1")
    await rig.pass_time(95 * SECOND)
    (line,) = [line for line in await lines_with(rig, "Health") if "dead" in line]
    assert line.startswith("[Health] Worker worker-1 (worker-1) dead - no heartbeat for 1m35s")


async def test_orphans_are_counted_in_one_line(rig: Rig) -> None:
    for n in range(3):
        await rig.submit(args=n)
    agent = await rig.agent()
    await agent.take(3)
    await rig.engine.workers.remove(agent.id, force=True)
    await rig.cleanup()
    assert await lines_with(rig, "Cleanup") == ["[Cleanup] Found 3 orphaned jobs"]


async def test_a_timeout_with_the_last_activity(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit(queue="live")
    given = await agent.take_one()
    await rig.advance(MINUTE)
    await agent.show_activity(given)
    active = datetime.fromtimestamp(rig.now / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    await agent.finish(given, "timed_out")
    assert await lines_with(rig, "Cleanup") == [
        f"[Cleanup] Job {job} timed out (last activity: {active})"
    ]


async def test_retries_with_their_backoff(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit()
    for _ in range(2):
        await agent.fail(await agent.take_one(), FailureClass.NETWORK, "broken pipe")
        await rig.advance(MINUTE)
    await agent.fail(await agent.take_one(), FailureClass.WORKER_LOST, "node unavailable")
    await rig.advance(MINUTE)
    await agent.release(await agent.take_one(), "preempted")
    assert await lines_with(rig, "Retry") == [
        f"[Retry] Job {job}: attempt 2 in 5s (retry 1 of 3, reason: broken pipe)",
        f"[Retry] Job {job}: attempt 3 in 10s (retry 2 of 3, reason: broken pipe)",
        f"[Retry] Job {job}: attempt 4 in 5s (retry 1 of 3, reason: node unavailable)",
        f"[Retry] Job {job}: attempt 5 at once (not counted, reason: preempted)",
    ]


async def test_a_jobs_own_limit_of_retries_is_shown(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit(retries=7)
    await agent.fail(await agent.take_one(), FailureClass.RESOURCE)
    assert await lines_with(rig, "Retry") == [
        f"[Retry] Job {job}: attempt 2 in 5s (retry 1 of 7, reason: resource failure)"
    ]


async def test_reasons_and_actors_are_shown(rig: Rig) -> None:
    job = await rig.submit(unblock="manual")
    await rig.engine.jobs.cancel([job], reason="not needed", actor="ann")
    assert await lines(rig) == [
        f"[FSM] Job {job}: NEW → BLOCKED (reason: Submitted, waiting for its dependencies)",
        f"[FSM] Job {job}: BLOCKED → CANCELED (reason: not needed, by ann)",
    ]


async def test_everything_else_has_a_line_too(rig: Rig) -> None:
    submitted = await rig.submit_all({}, workflow="w")
    job = submitted.ids[0]
    await rig.engine.jobs.adjust_priority(job, 2, actor="ann")
    await rig.engine.queues.pause("batch", actor="ann")
    await rig.engine.jobs.cancel([job])
    new = (await rig.engine.jobs.retry(job, actor="ann")).id
    other = [line for line in await lines(rig) if not line.startswith("[FSM]")]
    assert other == [
        f"[Workflow] Workflow {submitted.workflow}: submitted as w",
        f"[Priority] Job {job}: Adjustment 0 → 2 (by ann)",
        "[Queue] Queue batch paused (by ann)",
        f"[Workflow] Workflow {submitted.workflow}: queued → failed",
        f"[Retry] Job {job} superseded by job {new} (by ann)",
        f"[Workflow] Workflow {submitted.workflow}: failed → dispatching",
    ]


@pytest.mark.parametrize("kind", list(EventKind))
def test_no_kind_of_event_is_left_without_a_line(kind: EventKind) -> None:
    event = Event(1, 0, kind, 7, 1, 9, 1, 0, 2 if kind == EventKind.JOB else 0, "why", None, None)
    (line,) = render(event, {})
    assert "why" in line
    assert not line.startswith("[Event]")


def test_the_examples_of_the_seed() -> None:
    names = {1: WorkerName("worker-1", "node-name")}
    assigned = Event(1, 0, EventKind.JOB, 123, 1, 1, 1, 2, 3, None, None, None)
    dead = Event(
        2, 0, EventKind.WORKER, 0, 0, 1, 1, 0, 0,
        "dead - no heartbeat for 2m30s (threshold: 2m)", None, '{"status":"offline"}',
    )  # fmt: skip
    assert render(assigned, names) == [
        "[FSM] Job 123: QUEUED → ASSIGNED (reason: Assigned to worker worker-1)"
    ]
    assert render(dead, names) == [
        "[Health] Worker worker-1 (node-name) dead - no heartbeat for 2m30s (threshold: 2m)"
    ]

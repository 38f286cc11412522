"""Jobs as callers see them: their dependencies after retries, and facts of every transition."""

from collections.abc import Sequence

from tests.engine.support.rig import Rig
from windlass.domain.access.rights import Identity, Role
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobFilter
from windlass.messages.jobs import LinkedJob
from windlass.operations.queries import Queries
from windlass.workflows.graph import Edge, graph_of_jobs

ROOT = Identity(1, "root", Role.ADMIN)


async def fail_one(rig: Rig) -> None:
    agent = await rig.agent()
    await agent.fail(await agent.take_one(), FailureClass.EXECUTION)


async def test_after_a_retry_dependents_show_the_new_job_and_the_old_one(rig: Rig) -> None:
    first = await rig.submit()
    waits = await rig.submit(after_any=(first,), unblock="manual")
    await fail_one(rig)
    again = (await rig.engine.jobs.retry(first)).id
    await rig.scheduling()
    queries = Queries(rig.engine)
    shown = await queries.job(waits, ROOT)
    assert shown.after_any == [again]
    assert shown.dependencies == [
        LinkedJob(job=first, state="failed", any_end=True, superseded_by=again),
        LinkedJob(job=again, state="queued", any_end=True),
    ]
    linked = [LinkedJob(job=waits, state="blocked", any_end=True)]
    assert (await queries.job(again, ROOT)).dependents == linked
    assert (await queries.job(first, ROOT)).dependents == linked
    await fail_one(rig)
    third = (await rig.engine.jobs.retry(again)).id
    shown = await queries.job(waits, ROOT)
    assert shown.after_any == [third]
    assert [one.superseded_by for one in shown.dependencies] == [again, third, None]


async def test_the_graph_of_a_workflow_follows_a_retry(rig: Rig) -> None:
    made = await rig.submit_all(
        {"name": "a"}, {"name": "b", "after_any": ("a",), "unblock": "manual"}, workflow="w"
    )
    await fail_one(rig)
    await rig.engine.jobs.retry(made.ids[0])
    listed = await Queries(rig.engine).jobs(JobFilter(workflow=made.workflow), None, 10)
    drawn = graph_of_jobs("w", listed.jobs)
    assert drawn.edges == [Edge("a", "b", True)]
    assert sorted(box.name for box in drawn.boxes) == ["a", "b"]


async def test_a_viewer_of_the_namespace_sees_dependents(rig: Rig) -> None:
    job = await rig.submit(namespace="mine")
    await rig.submit(namespace="mine", after=(job,))
    viewer = Identity(2, "else", Role.VIEWER, ("mine",))
    assert len((await Queries(rig.engine).job(job, viewer)).dependents) == 1


async def test_every_transition_has_a_reason_an_actor_and_its_worker(rig: Rig) -> None:
    job = await rig.submit(submitted_by="alice")
    agent = await rig.agent("w0")
    await agent.fail(await agent.take_one(), FailureClass.NETWORK, "gone")
    await rig.advance(10_000)
    held = await agent.take_one()
    queries = Queries(rig.engine)
    running = (await queries.job(job, ROOT)).transitions[-1]
    assert (running.to, running.worker) == ("running", "w0")
    await agent.finish(held)
    moves = (await queries.job(job, ROOT)).transitions
    assert [(m.to, m.worker, m.reason, m.actor) for m in moves] == [
        ("queued", None, "Submitted", "alice"),
        ("assigned", "w0", "Assigned to worker w0", "scheduler"),
        ("running", "w0", "Started on worker w0", "worker w0"),
        ("retrying", "w0", "gone", "scheduler"),
        ("queued", None, "Backoff over", "scheduler"),
        ("assigned", "w0", "Assigned to worker w0", "scheduler"),
        ("running", "w0", "Started on worker w0", "worker w0"),
        ("completed", "w0", "Completed on worker w0", "worker w0"),
    ]


async def nobody(jobs: Sequence[JobRecord]) -> dict[int, str]:
    """Refuses no job."""
    return {}


async def test_dead_letters_that_were_retried_are_gone(rig: Rig) -> None:
    job = await rig.submit()
    await fail_one(rig)
    dead = JobFilter(dead=True)
    queries = Queries(rig.engine)
    assert [one.id for one in (await queries.jobs(dead, None, 10)).jobs] == [job]
    assert (await rig.engine.bulk.retry(dead, 0, "me", nobody)).applied == 1
    assert (await queries.jobs(dead, None, 10)).jobs == []
    again = await rig.engine.bulk.retry(dead, 0, "me", nobody)
    assert (again.matched, again.applied) == (0, 0)
    failed = await rig.engine.bulk.retry(JobFilter(queue="default"), 0, "me", nobody)
    assert failed.matched == 0


async def test_shapes_that_a_reader_got_stay_known_when_a_rollback_clears_the_cache(
    rig: Rig,
) -> None:
    job = await rig.submit()
    catalog = rig.engine.catalog
    facts = (await rig.store.read(lambda tx: tx.jobs.read([job])))[job]
    shapes = await rig.store.read(lambda tx: catalog.know(tx, [facts.shape]))
    catalog.clear(numbers_return=True)
    assert shapes[facts.shape].queue == "default"

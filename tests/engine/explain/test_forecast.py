"""What is expected of jobs, from what is ahead of them and what such jobs took."""

from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.explain.forecast import Forecast, Span
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.views import JobFilter
from windlass.engine.explain.forecast import Outlook
from windlass.engine.fleet.epochs import begin_epoch
from windlass.engine.history.statistics import SETTLED_MS
from windlass.engine.loops.statistics import StatisticsLoop
from windlass.ports.gateway import Holder
from windlass.store.sql.transaction import ReadTx


async def outlook(rig: Rig, job: int) -> Outlook:
    async def read(tx: ReadTx) -> Outlook:
        view = await tx.views.job(job)
        assert view is not None
        return (await rig.engine.explain.outlooks(tx, [view]))[job]

    return await rig.store.read(read)


async def teach(rig: Rig, ms: int) -> None:
    """Let the statistics know that jobs of the usual shape take so long."""
    agent = await rig.agent("teacher", slots=1)
    for _ in range(3):
        await rig.submit()
        taken = await agent.take_one()
        await rig.advance(ms)
        await agent.finish(taken)
    await rig.engine.workers.remove(agent.id)
    await rig.advance(SETTLED_MS)
    await StatisticsLoop(rig.engine).run_once(rig.now)


def near(span: Span | None, ms: int) -> bool:
    return span is not None and abs(span.likely - ms) <= ms // 5 + 1


async def test_a_job_with_a_free_worker_starts_now_and_ends_as_others_did(rig: Rig) -> None:
    await teach(rig, 10 * MINUTE)
    await rig.agent(slots=2)
    job = await rig.submit()
    told = (await outlook(rig, job)).forecast
    assert told.start == Span(0, 0, 0)
    assert near(told.end, 10 * MINUTE)


async def test_what_is_ahead_counts_by_the_slots_that_could_take_it(rig: Rig) -> None:
    await teach(rig, 10 * MINUTE)
    agent = await rig.agent(slots=2)
    await rig.submit_all({}, {}, {}, {})
    await agent.take(2)
    job = await rig.submit()
    # Two jobs are ahead, so three slots must become free, of two.
    told = (await outlook(rig, job)).forecast
    assert near(told.start, 15 * MINUTE)
    assert near(told.end, 25 * MINUTE)
    urgent = await rig.submit(priority=5)
    assert near((await outlook(rig, urgent)).forecast.start, 5 * MINUTE)


async def test_workers_that_cannot_run_it_do_not_count(rig: Rig) -> None:
    await teach(rig, 10 * MINUTE)
    await rig.agent("other")
    gpu = await rig.submit(requires=("gpus>=1",))
    told = (await outlook(rig, gpu)).forecast
    assert (told.start, told.end) == (None, None)


async def test_a_planned_job_starts_when_it_may(rig: Rig) -> None:
    await rig.agent()
    job = await rig.submit(not_before=rig.now + MINUTE)
    told = (await outlook(rig, job)).forecast
    assert told.start == Span(MINUTE, MINUTE, MINUTE)


async def test_no_job_is_expected_to_start_in_the_grace_period_after_a_restore(rig: Rig) -> None:
    await rig.agent(slots=1)
    job = await rig.submit()
    hold_until = (await rig.engine.run(lambda work: begin_epoch(work, "me"))).hold_until
    await rig.advance(SECOND)
    left = hold_until - rig.now
    assert left > 0
    assert (await outlook(rig, job)).forecast.start == Span(left, left, left)


async def test_a_running_job_has_an_end(rig: Rig) -> None:
    await teach(rig, 10 * MINUTE)
    job = await rig.submit()
    await (await rig.agent()).take_one()
    await rig.advance(4 * MINUTE)
    told = (await outlook(rig, job)).forecast
    assert told.start is None
    assert near(told.end, 6 * MINUTE)


async def test_no_start_is_expected_of_a_function_that_waits_for_an_answer(rig: Rig) -> None:
    await teach(rig, MINUTE)
    agent = await rig.agent()
    job = await rig.submit()
    taken = await agent.take_one()
    holder = Holder(agent.id, agent.incarnation, taken.job, taken.attempt)
    await rig.engine.steps.ask(holder, "q", "Ship?", None, None)
    await agent.finish(taken, "suspended")
    assert (await outlook(rig, job)).forecast == Forecast()


async def test_nothing_is_expected_of_blocked_and_ended_jobs(rig: Rig) -> None:
    await rig.agent()
    first = await rig.submit()
    blocked = await rig.submit(after=(first,))
    await rig.engine.jobs.cancel([first])
    for job in (first, blocked):
        told = (await outlook(rig, job)).forecast
        assert (told.start, told.end) == (None, None)


async def test_a_list_counts_what_is_ahead_once_for_jobs_alike(memory_rig: Rig) -> None:
    rig = memory_rig
    await teach(rig, 10 * MINUTE)
    agent = await rig.agent(slots=1)
    await rig.submit()
    await agent.take_one()
    jobs = (await rig.submit_all(*[{} for _ in range(30)])).ids
    urgent = await rig.submit(priority=1)

    async def read(tx: ReadTx) -> dict[int, Outlook]:
        page = await tx.views.jobs(JobFilter(states=(State.QUEUED.code,)), 0, 100)
        return await rig.engine.explain.outlooks(tx, page.jobs)

    told = await rig.store.read(read)
    assert set(told) == {*jobs, urgent}
    spans = {told[job].forecast.start for job in jobs}
    assert len(spans) == 1
    first = told[urgent].forecast.start
    assert first is not None
    assert all(span is not None and first.likely < span.likely for span in spans)


async def test_explain_tells_when_a_running_job_ends_or_that_it_is_past_its_estimate(
    rig: Rig,
) -> None:
    await teach(rig, 10 * MINUTE)
    agent = await rig.agent()
    job = await rig.submit()
    await agent.take_one()
    await rig.advance(MINUTE)
    (note,) = (await rig.engine.explain.job(job)).notes
    assert note.startswith("it will likely end at about ")
    await rig.advance(60 * MINUTE)
    (note,) = (await rig.engine.explain.job(job)).notes
    assert note.startswith("it is past its estimate: it has run 5")
    assert note.endswith(" min longer than 90 % of such jobs")

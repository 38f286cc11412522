"""Long-polls: who is woken, by what, and who is left to sleep."""

import asyncio

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import Rig, Turn
from windlass.domain.job.forms import Concurrency
from windlass.domain.job.job import JobSpec
from windlass.domain.matching.workers import WorkerStatus
from windlass.messages.sync import Finished, SyncReply

WAIT = 30_000


class Waiting:
    """A sync that is held open."""

    def __init__(self, rig: Rig, agent: Agent, want: int = 1) -> None:
        self.agent = agent
        self._rig = rig
        self._task = asyncio.ensure_future(agent.sync(want=want, wait_ms=WAIT))

    async def asleep(self) -> "Waiting":
        """Return once the sync waits for something to happen."""
        await quiet(self._rig)
        assert not self._task.done()
        return self

    @property
    def answered(self) -> bool:
        return self._task.done()

    async def reply(self) -> SyncReply:
        return await asyncio.wait_for(self._task, 20)

    async def jobs(self) -> list[int]:
        return [job.job for job in (await self.reply()).jobs]

    async def hang_up(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def quiet(rig: Rig) -> None:
    """Wait until nothing is under way any more but sleeping syncs."""
    calm = 0
    while calm < 3:
        calm = 0 if rig.engine.busy else calm + 1
        await Turn()


async def wait_all(rig: Rig, count: int, **fields: object) -> list[Waiting]:
    """Syncs that wait, in the order in which they began: those that come at once have none."""
    agents = [await rig.agent(f"w{n}", **fields) for n in range(count)]  # type: ignore[arg-type]
    return [await Waiting(rig, agent).asleep() for agent in agents]


async def hang_up(waiting: list[Waiting]) -> None:
    for one in waiting:
        await one.hang_up()


async def test_a_new_job_ends_a_wait(rig: Rig) -> None:
    (waiting,) = await wait_all(rig, 1)
    job = await rig.submit()
    assert await waiting.jobs() == [job]


async def test_a_worker_beside_the_engine_hears_early_that_a_job_may_come(rig: Rig) -> None:
    agent = await rig.agent()
    woken: list[int] = []

    async def wait() -> SyncReply:
        request = agent.request(want=1, wait_ms=WAIT)
        return await rig.engine.sync(agent.id, request, lambda: woken.append(1))

    drained = asyncio.ensure_future(wait())
    await quiet(rig)
    await rig.engine.workers.set_status(agent.id, WorkerStatus.DRAINING)
    assert (await drained).drain
    assert not woken
    await rig.engine.workers.set_status(agent.id, WorkerStatus.ONLINE)
    given = asyncio.ensure_future(wait())
    await quiet(rig)
    job = await rig.submit()
    assert [found.job for found in (await given).jobs] == [job]
    assert woken


async def test_k_jobs_wake_at_most_k_workers(rig: Rig) -> None:
    waiting = await wait_all(rig, 5)
    looks = await claims(rig)
    await rig.submit_all({"args": 1}, {"args": 2})
    await quiet(rig)
    assert sum(one.answered for one in waiting) == 2
    assert await claims(rig) - looks <= 2
    await hang_up(waiting)


async def claims(rig: Rig) -> int:
    return (await rig.engine.metrics()).assignment_attempts


async def test_the_first_to_wait_is_the_first_to_be_woken(rig: Rig) -> None:
    waiting = await wait_all(rig, 3)
    job = await rig.submit()
    assert await waiting[0].jobs() == [job]
    await hang_up(waiting)


async def test_only_workers_that_can_run_the_job_are_woken(rig: Rig) -> None:
    (weak,) = await wait_all(rig, 1, metadata={"system:cpus": 1})
    strong = await Waiting(rig, await rig.agent("strong", metadata={"system:cpus": 8})).asleep()
    looks = await claims(rig)
    job = await rig.submit(requires=("cpus>=4",))
    assert await strong.jobs() == [job]
    await quiet(rig)
    assert not weak.answered
    assert await claims(rig) - looks == 1
    await weak.hang_up()


async def test_a_worker_with_no_free_slot_hears_of_a_cancel(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.take_one()
    waiting = await Waiting(rig, agent, want=0).asleep()
    await rig.engine.jobs.cancel([job])
    assert [stop.job for stop in (await waiting.reply()).cancel] == [job]


async def test_a_worker_with_no_free_slot_is_not_woken_by_jobs(rig: Rig) -> None:
    waiting = await Waiting(rig, await rig.agent(), want=0).asleep()
    await rig.submit()
    await quiet(rig)
    assert not waiting.answered
    await waiting.hang_up()


async def test_a_stop_that_was_told_does_not_end_the_next_wait(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.take_one()
    await rig.engine.jobs.cancel([job])
    assert (await agent.sync(wait_ms=WAIT)).cancel
    await (await Waiting(rig, agent, want=0).asleep()).hang_up()


async def test_a_drain_ends_a_wait(rig: Rig) -> None:
    (waiting,) = await wait_all(rig, 1)
    await rig.engine.workers.set_status(waiting.agent.id, WorkerStatus.DRAINING)
    assert (await waiting.reply()).drain


@pytest.mark.parametrize("wait_ms", [0, WAIT])
async def test_a_newer_sync_ends_the_older_wait(rig: Rig, wait_ms: int) -> None:
    (older,) = await wait_all(rig, 1)
    newer = asyncio.ensure_future(older.agent.sync(want=1, wait_ms=wait_ms))
    assert (await older.reply()).jobs == ()
    job = await rig.submit()
    if wait_ms:
        assert [j.job for j in (await newer).jobs] == [job]
    else:
        await newer
        assert len((await rig.snapshot()).leases) == 0


async def test_a_wait_that_is_hung_up_takes_no_job(rig: Rig) -> None:
    (waiting,) = await wait_all(rig, 1)
    await waiting.hang_up()
    await rig.submit()
    await quiet(rig)
    assert len((await rig.snapshot()).leases) == 0


async def test_a_wake_up_that_was_not_used_goes_to_another_worker(rig: Rig) -> None:
    first, second = await wait_all(rig, 2)
    submitting = asyncio.ensure_future(rig.submit())
    while not rig.engine.waiting_syncs.any_woken():
        await Turn()
    await first.hang_up()
    assert await second.jobs() == [await submitting]


async def test_a_dependent_that_is_released_ends_a_wait(rig: Rig) -> None:
    first = await rig.submit()
    second = await rig.submit(after=(first,))
    busy = await rig.agent("busy")
    given = await busy.take_one()
    waiting = await Waiting(rig, await rig.agent()).asleep()
    await busy.finish(given)
    assert await waiting.jobs() == [second]


async def test_a_freed_limit_ends_a_wait(rig: Rig) -> None:
    one = Concurrency(key="db", max=1)
    _, second = [await rig.submit(concurrency=one, args=n) for n in range(2)]
    busy = await rig.agent("busy")
    given = await busy.take_one()
    waiting = await Waiting(rig, await rig.agent()).asleep()
    await busy.finish(given)
    assert await waiting.jobs() == [second]


async def test_a_resumed_queue_ends_a_wait(rig: Rig) -> None:
    job = await rig.submit()
    await rig.engine.queues.pause("default")
    (waiting,) = await wait_all(rig, 1)
    await rig.engine.queues.resume("default")
    assert await waiting.jobs() == [job]


async def test_new_metadata_of_an_operator_ends_a_wait(rig: Rig) -> None:
    job = await rig.submit(requires=("cpus>=4",))
    (waiting,) = await wait_all(rig, 1)
    await rig.engine.workers.set_metadata(waiting.agent.id, {"system:cpus": 8})
    assert await waiting.jobs() == [job]


async def test_a_planned_job_ends_a_wait_at_its_time(rig: Rig) -> None:
    (waiting,) = await wait_all(rig, 1)
    job = await rig.submit(not_before=rig.now + 40)
    await quiet(rig)
    assert not waiting.answered
    await rig.advance(40)
    # The engine's own alarm rings after 40 real milliseconds; nothing else looks.
    assert await waiting.jobs() == [job]


async def test_a_wait_ends_with_nothing_when_its_time_is_over(rig: Rig) -> None:
    reply = await (await rig.agent()).sync(want=1, wait_ms=1)
    assert (reply.jobs, reply.applied) == ((), True)


async def test_a_report_is_answered_at_once(rig: Rig) -> None:
    await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    finished = (Finished(given.job, given.attempt),)
    reply = await asyncio.wait_for(agent.sync(finished=finished, want=1, wait_ms=WAIT), 20)
    assert reply.applied


async def test_a_closing_engine_answers_all_waits(rig: Rig) -> None:
    waiting = await wait_all(rig, 3)
    await rig.engine.close()
    assert [await one.jobs() for one in waiting] == [[], [], []]


async def test_waiting_counts_as_a_heartbeat_only_when_the_sync_arrived(rig: Rig) -> None:
    (waiting,) = await wait_all(rig, 1)
    seen = (await rig.worker(waiting.agent.id)).last_seen
    await rig.advance(25_000)
    await rig.submit()
    await waiting.jobs()
    assert (await rig.worker(waiting.agent.id)).last_seen == seen


async def test_jobs_flow_without_any_loop(rig: Rig) -> None:
    agent = await rig.agent()
    jobs = await rig.engine.submit([JobSpec(task="t", args=n) for n in range(3)])
    done = []
    for _ in range(3):
        given = (await agent.sync(want=1, wait_ms=WAIT)).jobs[0]
        await agent.finish(given)
        done.append(given.job)
    assert tuple(done) == jobs.ids


async def test_another_engines_job_ends_a_wait(rig: Rig) -> None:
    if rig.kind == "sqlite":
        return  # one server works on a file
    other = await rig.another_engine()
    (waiting,) = await wait_all(rig, 1)
    submitted = await other.submit([JobSpec(task="t")])
    assert await waiting.jobs() == list(submitted.ids)


async def test_another_engines_cancel_ends_a_wait(rig: Rig) -> None:
    if rig.kind == "sqlite":
        return  # one server works on a file
    other = await rig.another_engine()
    job = await rig.submit()
    agent = await rig.agent()
    await agent.take_one()
    waiting = await Waiting(rig, agent, want=0).asleep()
    await other.jobs.cancel([job])
    assert [stop.job for stop in (await waiting.reply()).cancel] == [job]

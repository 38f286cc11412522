"""A backup is restored: nothing from the time after it was made is taken for current."""

from functools import partial

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.filing import Desk, holder_of
from tests.engine.support.rig import MINUTE, Rig
from windlass.domain.access.rights import Identity, Role
from windlass.domain.job.forms import Backoff
from windlass.domain.rows.gaps import Mark
from windlass.domain.values.errors import Conflict, Lost, NotFound
from windlass.engine.fleet.epochs import begin_epoch, check_marks, explain_missing
from windlass.engine.verify.check import verify
from windlass.operations.queries import Queries

FIRST = 1_000_001


async def restore(rig: Rig) -> None:
    await rig.engine.run(lambda work: begin_epoch(work, "me"))
    await rig.engine.refresh()


async def pass_time(rig: Rig, ms: int) -> None:
    await rig.pass_time(ms)
    await rig.engine.refresh()


async def run_it(rig: Rig, agent: Agent, attempt: int = FIRST) -> None:
    (job,) = (await agent.sync(want=1)).jobs
    assert job.attempt == attempt
    await agent.finish(job)
    assert await verify(rig.store, rig.engine.config) == []


async def test_agents_of_the_time_before_are_told_to_stop(rig: Rig) -> None:
    agent = await rig.agent()
    await restore(rig)
    with pytest.raises(Conflict, match="stop its jobs and enrol again") as refused:
        await agent.sync(want=1)
    assert refused.value.code == "incarnation_ended"
    await agent.enrol(takeover=True)
    assert agent.incarnation == FIRST
    assert (await agent.sync()).epoch == 1


async def test_a_new_worker_has_an_incarnation_that_was_never_given(rig: Rig) -> None:
    await restore(rig)
    assert (await rig.agent()).incarnation == FIRST


async def test_nothing_starts_before_every_worker_of_before_has_stopped(rig: Rig) -> None:
    await rig.submit()
    await restore(rig)
    agent = await rig.agent()
    assert not (await agent.sync(want=1)).jobs
    config = rig.engine.config
    await pass_time(rig, config.heartbeat_timeout_ms + config.term_grace_ms - 1)
    agent = await rig.agent()
    assert not (await agent.sync(want=1)).jobs
    await pass_time(rig, 1)
    await run_it(rig, agent)


async def test_a_job_that_the_backup_shows_running_is_tried_again(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.submit()
    await agent.take()
    await restore(rig)
    await agent.enrol(takeover=True)
    await pass_time(rig, 3 * MINUTE)
    await run_it(rig, await rig.agent(), FIRST + 1)


async def test_a_worker_that_says_it_knows_a_newer_epoch_is_refused_alone(rig: Rig) -> None:
    knowing, other = await rig.agent("knowing"), await rig.agent("other")
    await rig.submit()
    with pytest.raises(Conflict, match="windlass db restored") as refused:
        await knowing.sync(want=1, epoch=3)
    assert refused.value.code == "old_epoch"
    assert len((await other.sync(want=1)).jobs) == 1


async def test_a_mark_of_a_newer_epoch_begins_one_that_nobody_has_seen(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.submit()
    newest = await rig.engine.store.read(lambda tx: tx.log.read(0, 1))
    mark = Mark(newest[0].seq, newest[0].at, epoch=3)
    assert await rig.engine.run(lambda work: check_marks(work, [mark]))
    await rig.engine.refresh()
    with pytest.raises(Conflict):
        await agent.sync()
    await pass_time(rig, 3 * MINUTE)
    again = await rig.agent("again")
    (job,) = (await again.sync(want=1)).jobs
    assert job.attempt == 4 * FIRST - 3
    assert not await rig.engine.run(lambda work: check_marks(work, [mark]))


async def test_a_mark_that_the_store_does_not_have_begins_one_epoch(rig: Rig) -> None:
    """A loss counts once, however many marks show it and whichever engine reads them."""
    number = await rig.submit()
    event = await rig.engine.store.read(lambda tx: tx.log.newest())
    marks = [Mark(event + 7, 1), Mark(event + 9, 2)]
    assert await rig.engine.run(lambda work: check_marks(work, marks[1:]))
    assert not await rig.engine.run(lambda work: check_marks(work, marks))
    await rig.engine.refresh()
    assert rig.engine.catalog.epoch == 1
    assert await rig.submit(args=2) > number + 50_000
    lost = await explain_missing(rig.store, NotFound("job", number + 1))
    assert "job 2 was lost: the restore at" in lost.message
    assert isinstance(lost, Lost)
    assert not isinstance(await explain_missing(rig.store, NotFound("worker", 2)), Lost)


async def test_marks_of_events_that_are_there_or_older_than_the_log_prove_nothing(rig: Rig) -> None:
    await rig.submit()
    (first,) = await rig.engine.store.read(lambda tx: tx.log.read(0, 1))
    for mark in (Mark(first.seq, first.at), Mark(first.seq - 1, 5)):
        assert not await rig.engine.run(partial(check_marks, marks=[mark]))
    await rig.engine.refresh()
    assert rig.engine.catalog.epoch == 0


async def test_attempts_go_on_counting_for_people(rig: Rig) -> None:
    """Their own numbers are those of the epoch, so that no report of before fits."""
    desk = Desk(rig)
    who = Identity(0, "me", Role.ADMIN, ())
    queries = Queries(rig.engine)
    agent = await rig.agent("before")
    number = await rig.submit(retries=5, backoff=Backoff(initial=0.0))
    early = await rig.submit(args=2)
    for _ in range(2):
        await agent.fail(await agent.take_one())
    await restore(rig)
    await pass_time(rig, 3 * MINUTE)
    await agent.enrol(takeover=True)
    jobs = (await agent.sync(want=2)).jobs
    assert {job.job: job.attempt for job in jobs} == {number: FIRST + 2, early: FIRST}
    job = next(job for job in jobs if job.job == number)
    await desk.files.append_log(holder_of(agent, job), 0, b"third")
    shown = await queries.job(number, who)
    assert (shown.attempt, [one.number for one in shown.attempts]) == (3, [1, 2, 3])
    assert {change.attempt for change in shown.transitions} == {0, 1, 2, 3}
    assert await desk.text(number, 3) == await desk.text(number, FIRST + 2) == b"third"
    assert await desk.text(number, 2) == b""
    assert (await queries.job(early, who)).attempt == 1
    assert await verify(rig.store, rig.engine.config) == []


async def test_explain_and_time_name_the_grace_after_a_restore(rig: Rig) -> None:
    await restore(rig)
    agent = await rig.agent()
    await rig.submit()
    job = await rig.submit(args=2)
    assert await agent.take(2) == ()
    found = await rig.engine.explain.job(job)
    assert [one.kind for one in found.waiting_for] == ["restored"]
    assert "the grace period of the new epoch after a restore" in found.summary
    assert "it gets no job before the grace" in (await rig.engine.explain.worker(agent.id)).summary
    await pass_time(rig, 3 * MINUTE)
    await agent.enrol()
    assert len(await agent.take(2)) == 2
    spent = {p.cause: p.seconds for p in (await rig.engine.explain.time_spent(job)).parts}
    grace = rig.engine.config.heartbeat_timeout_ms + rig.engine.config.term_grace_ms
    assert spent["restored"] == grace / 1000

"""Logs: streamed with offsets, fenced, never in the way of a job's end."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.filing import Desk, holder_of
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.files import LogRow, LogState
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound
from windlass.engine.attempts.log_segments import SEGMENT_LIMIT, left_out
from windlass.engine.files.logs import (
    GIVEN_UP_MS,
    LogPosition,
    NextPart,
)
from windlass.engine.verify import verify
from windlass.messages.sync import Assignment


async def running(rig: Rig) -> tuple[Agent, Assignment]:
    agent = await rig.agent()
    await rig.submit()
    (job,) = await agent.take()
    return agent, job


async def test_a_log_grows_while_its_job_runs(rig: Rig) -> None:
    desk = Desk(rig)
    agent, job = await running(rig)
    holder = holder_of(agent, job)
    assert (await desk.files.log(job.job)).row.state == LogState.NONE
    assert await desk.files.append_log(holder, 0, b"one ") == 4
    assert await desk.files.append_log(holder, 4, b"two") == 7
    assert await desk.files.append_log(holder, 2, b"e two") == 7
    assert await desk.text(job.job) == b"one two"
    assert await desk.text(job.job, job.attempt, 4) == b"two"
    assert (await desk.files.log(job.job)).row == LogRow(job.job, job.attempt, 1, 7, 0, 0)
    await agent.finish(job)
    view = await rig.store.read(lambda tx: tx.views.job(job.job))
    assert view is not None
    assert view.log is not None
    assert view.log.bytes == 7


async def test_completion_does_not_wait_for_the_log(rig: Rig) -> None:
    desk = Desk(rig)
    agent, job = await running(rig)
    holder = holder_of(agent, job)
    await desk.files.append_log(holder, 0, b"one ")
    await agent.finish(job)
    assert await rig.state(job.job) == "completed"
    assert await desk.files.append_log(holder, 4, b"two") == 7
    with pytest.raises(Conflict, match="all 9 bytes of the log, got 7"):
        await desk.files.end_log(holder, 9, "committed")
    await desk.files.end_log(holder, 7, "committed")
    await desk.files.end_log(holder, 7, "committed")
    assert await desk.files.append_log(holder, 7, b"too late") == 7
    assert await desk.text(job.job) == b"one two"
    said = [event for event in await rig.events(job.job) if event.kind == EventKind.LOG]
    assert [event.reason for event in said] == ["The log is committed"]
    assert (await desk.files.log(job.job)).row.state == LogState.COMMITTED


async def test_a_lost_log_fails_nothing_and_says_what_is_missing(rig: Rig) -> None:
    desk = Desk(rig)
    agent, job = await running(rig)
    holder = holder_of(agent, job)
    await desk.files.append_log(holder, 0, b"one ")
    await agent.finish(job)
    await desk.files.end_log(holder, 10, "lost")
    assert await rig.state(job.job) == "completed"
    assert await desk.text(job.job) == b"one " + left_out(6)
    assert (await desk.files.log(job.job)).row == LogRow(job.job, job.attempt, 3, 10, 4, 10)


async def test_only_the_holder_writes(rig: Rig) -> None:
    desk = Desk(rig)
    agent, job = await running(rig)
    holder = holder_of(agent, job)
    strangers = [
        holder._replace(worker=holder.worker + 1),
        holder._replace(incarnation=holder.incarnation + 1),
        holder._replace(attempt=holder.attempt + 1),
        holder._replace(job=holder.job + 1),
    ]
    for stranger in strangers:
        for call in (
            desk.files.append_log(stranger, 0, b"not mine"),
            desk.files.end_log(stranger, 0, "committed"),
            desk.files.progress(stranger, 1),
            desk.leave(stranger, "a", b"not mine"),
            desk.files.presign_artifact(stranger, "a"),
        ):
            with pytest.raises(Conflict) as refusal:
                await call
            assert refusal.value.code == "lease_lost"
    assert [info async for info in desk.blobs.list("")] == []
    snapshot = await rig.snapshot()
    assert (snapshot.logs, snapshot.artifacts, snapshot.progress) == ((), (), ())


async def test_a_worker_that_was_given_up_writes_no_more(rig: Rig) -> None:
    desk = Desk(rig)
    agent, job = await running(rig)
    holder = holder_of(agent, job)
    await desk.files.append_log(holder, 0, b"one")
    await rig.end_grace()
    await rig.pass_time(3 * MINUTE)
    assert await rig.state(job.job) in ("retrying", "queued")
    with pytest.raises(Conflict, match="is not held by"):
        await desk.files.append_log(holder, 3, b"two")
    with pytest.raises(Conflict, match="is not held by"):
        await desk.files.end_log(holder, 3, "committed")


async def test_the_end_of_a_failed_attempt_s_log_is_still_taken(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    await rig.submit(retry_on=("execution",), retries=2)
    (first,) = await agent.take()
    await agent.fail(first)
    assert await desk.files.append_log(holder_of(agent, first), 0, b"why it failed") == 13
    await rig.advance(MINUTE)
    await rig.cleanup()
    (second,) = await agent.take()
    await desk.files.append_log(holder_of(agent, second), 0, b"again")
    assert await desk.text(first.job) == b"again"
    assert await desk.text(first.job, first.attempt) == b"why it failed"


async def test_log_bytes_and_progress_are_signs_of_life(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    await rig.submit(idle_timeout_ms=10 * SECOND)
    (job,) = await agent.take()
    for number in range(6):
        await rig.advance(9 * SECOND)
        if number % 2:
            await desk.files.progress(holder_of(agent, job), {"done": number})
        else:
            await desk.files.append_log(holder_of(agent, job), number, b"x")
        (lease,) = (await rig.snapshot()).leases
        assert lease.activity_at == rig.now
        assert lease.deadline_at is not None
        assert lease.deadline_at > rig.now
    view = await rig.store.read(lambda tx: tx.views.job(job.job))
    assert view is not None
    assert view.progress is not None
    assert view.progress.value == b'{"done":5}'


async def test_a_log_over_its_limit_is_cut_in_the_middle(rig: Rig) -> None:
    await rig.restart(Config(log_limit=1_000))
    desk = Desk(rig)
    agent, job = await running(rig)
    text = bytes(range(33, 126)) * 100
    for start in range(0, len(text), 50):
        await desk.files.append_log(holder_of(agent, job), start, text[start : start + 50])
    shown = await desk.text(job.job)
    assert shown.startswith(text[:500])
    assert shown.endswith(text[-500:])
    assert b"bytes of the log were left out here" in shown
    assert sum([info.size async for info in desk.blobs.list("logs")]) < 1_300


async def test_a_log_without_an_end_is_over_soon(rig: Rig) -> None:
    desk = Desk(rig)
    agent, job = await running(rig)
    await desk.files.append_log(holder_of(agent, job), 0, b"one")
    await agent.finish(job)
    end = LogPosition(job.attempt, 3)
    assert not (await desk.files.next_part(job.job, None, end, 0)).is_over
    await rig.advance(GIVEN_UP_MS + 1)
    assert (await desk.files.next_part(job.job, None, end, 60_000)).is_over


async def test_a_follower_sees_bytes_and_the_end_when_they_come(rig: Rig) -> None:
    desk = Desk(rig)
    agent, job = await running(rig)
    holder = holder_of(agent, job)
    waiting = asyncio.ensure_future(desk.files.follow_log(job.job, None, 0, 30_000))
    await desk.files.append_log(holder, 0, b"one")
    assert (await waiting).row.bytes == 3
    waiting = asyncio.ensure_future(desk.files.follow_log(job.job, None, 3, 30_000))
    await desk.files.end_log(holder, 3, "committed")
    assert (await waiting).row.state == LogState.COMMITTED
    assert (await desk.files.follow_log(job.job, None, 3, 0)).row.bytes == 3


async def text_of(part: NextPart) -> bytes:
    return b"".join([chunk async for chunk in part.reading.chunks])


async def test_a_follower_reads_each_attempt_to_its_end_before_the_next(rig: Rig) -> None:
    """Also where an attempt was handed back, and what arrived after the next one had begun."""
    desk, agent = Desk(rig), await rig.agent()
    number = await rig.submit(retries=2)
    await agent.release(await agent.take_one(prefetch=True))
    first = await agent.take_one()
    holder = holder_of(agent, first)
    await desk.files.append_log(holder, 0, b"one\n")
    read = await desk.files.next_part(number, None, LogPosition(0, 0), 0)
    await agent.fail(first, FailureClass.EXECUTION)
    await rig.advance(MINUTE)
    second = await agent.take_one()
    await agent.fail(second, FailureClass.EXECUTION)
    await rig.advance(MINUTE)
    third = await agent.take_one()
    await desk.files.append_log(holder_of(agent, second), 0, b"two\n")
    await desk.files.append_log(holder_of(agent, third), 0, b"three\n")
    begun = LogPosition(read.reading.shown, read.reading.next)
    waiting = asyncio.ensure_future(desk.files.next_part(number, None, begun, 60_000))
    await desk.files.append_log(holder, 4, b"late\n")
    followed = [await text_of(await waiting)]
    position = LogPosition((await waiting).reading.shown, (await waiting).reading.next)
    await desk.files.end_log(holder, 9, "committed")
    for _ in range(2):
        part = await desk.files.next_part(number, None, position, 60_000)
        followed.append(await text_of(part))
        position = LogPosition(part.reading.shown, part.reading.next)
    assert followed == [b"late\n", b"two\n", b"three\n"]
    assert position == LogPosition(3, 6)


async def test_what_cannot_be_meant_is_refused_by_name(rig: Rig) -> None:
    desk = Desk(rig)
    agent, job = await running(rig)
    holder = holder_of(agent, job)
    for call, field in (
        (desk.files.append_log(holder, -1, b""), "offset"),
        (desk.files.append_log(holder, 0, bytes(SEGMENT_LIMIT + 1)), "log"),
        (desk.files.append_log(holder._replace(job=0), 0, b""), "job"),
        (desk.files.end_log(holder, 2**60, "lost"), "bytes"),
        (desk.files.end_log(holder, 0, "done"), "state"),  # type: ignore[arg-type]
        (desk.files.progress(holder, "x" * 5_000), "progress"),
        (desk.files.progress(holder, object()), "progress"),
        (desk.files.read_log(job.job, None, -1), "offset"),
    ):
        with pytest.raises(InvalidInput) as refusal:
            await call
        assert refusal.value.field == field
    with pytest.raises(NotFound):
        await desk.files.read_log(99)
    with pytest.raises(NotFound, match=f"attempt 7 of job {job.job} does not exist"):
        await desk.files.read_log(job.job, 7)
    assert (await desk.files.read_log(job.job, 1)).next == 0


async def test_a_long_log_is_kept_in_few_objects_once_it_has_ended(memory_rig: Rig) -> None:
    desk = Desk(memory_rig)
    agent, job = await running(memory_rig)
    holder = holder_of(agent, job)
    for number in range(50):
        await desk.files.append_log(holder, 4 * number, b"%3d\n" % number)
    await desk.files.end_log(holder, 200, "committed")
    await desk.files.merging.settled()
    kept = [info.key async for info in desk.blobs.list("logs")]
    assert [key.endswith(".times") for key in kept] == [False, True]
    assert (await desk.text(job.job)).split() == [b"%d" % number for number in range(50)]
    await desk.files.merging.close()


async def test_an_engine_that_stops_waits_for_no_more_of_a_log(rig: Rig) -> None:
    desk = Desk(rig)
    agent, job = await running(rig)
    await desk.files.append_log(holder_of(agent, job), 0, b"one")
    position = LogPosition(job.attempt, 3)
    waiting = asyncio.ensure_future(desk.files.next_part(job.job, None, position, 60_000))
    followed = [chunk async for chunk in _stop_after_first(rig, desk.files.follow_growing(1))]
    async with asyncio.timeout(30):
        part = await waiting
    assert followed == [b"one"]
    assert (part.reading.next, part.is_over) == (3, False)


async def _stop_after_first(rig: Rig, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield chunk
        rig.engine.stop_waiting()


async def test_a_worker_that_lost_its_lease_may_only_say_that_the_log_is_lost(rig: Rig) -> None:
    """As one does that was stopped (SIGSTOP) with output that nobody has seen."""
    await rig.end_grace()
    desk = Desk(rig)
    agent, job = await running(rig)
    holder = holder_of(agent, job)
    await rig.pass_time(95 * SECOND)
    assert await rig.state(holder.job) in ("retrying", "queued")
    with pytest.raises(Conflict):
        await desk.files.append_log(holder, 0, b"late")
    with pytest.raises(Conflict):
        await desk.files.end_log(holder, 0, "committed")
    await desk.files.end_log(holder, 4, "lost")
    row = (await desk.files.log(holder.job, holder.attempt)).row
    assert (row.state, row.bytes) == (LogState.LOST, 4)
    stranger = holder._replace(incarnation=holder.incarnation + 1)
    with pytest.raises(Conflict):
        await desk.files.end_log(stranger, 4, "lost")
    assert await verify(rig.store, rig.engine.config) == []

"""Retention: what is old and needed by nobody goes, and `verify` still replays the rest."""

import hashlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.support.filing import Desk, holder_of
from tests.engine.support.flows import submit_flow
from tests.engine.support.moves import Move, moves
from tests.engine.support.player import Player
from tests.engine.support.rig import HOUR, MINUTE, Rig
from tests.engine.support.rigs import Rigs
from tests.support.forms import by_form
from windlass.domain.access.audit import AuditRow
from windlass.domain.access.tokens import Token
from windlass.domain.config import Config
from windlass.domain.job.forms import Concurrency
from windlass.domain.rows.events import BaselineKind, EventKind
from windlass.domain.rows.files import LogState
from windlass.domain.values.ids import JobId
from windlass.engine.files.files import Files
from windlass.engine.history.retention import spans
from windlass.engine.loops.retention import RetentionLoop, RetentionReport
from windlass.engine.verify.check import judge, verify
from windlass.store.sql.transaction import WriteTx

DAY = 24 * HOUR


async def retain(rig: Rig, desk: Desk | None = None) -> RetentionReport:
    """A round of the loop."""
    loop = RetentionLoop(rig.engine, (desk or Desk(rig)).blobs)
    return await loop.run_once(rig.now)


async def complete(rig: Rig, *numbers: int) -> None:
    """Run these jobs, which a worker is to find, to their ends."""
    agent = await rig.agent("finisher")
    left = set(numbers)
    while left:
        for job in await agent.take(want=10):
            await agent.finish(job)
            left.discard(job.job)


async def job_ids(rig: Rig) -> list[int]:
    return [row.facts.id for row in (await rig.snapshot()).jobs]


async def test_jobs_go_thirty_days_after_their_end(rig: Rig) -> None:
    old = await rig.submit()
    await complete(rig, old)
    await rig.advance(DAY)
    young = await rig.submit()
    await complete(rig, young)
    waiting = await rig.submit()
    await rig.advance(29 * DAY)
    assert (await retain(rig)).jobs == 0
    await rig.advance(1)
    assert (await retain(rig)).jobs == 1
    assert await job_ids(rig) == [young, waiting]
    await rig.advance(40 * DAY)
    await retain(rig)
    assert await job_ids(rig) == [waiting]
    said = [e.reason for e in await rig.events() if e.kind == EventKind.LOOP]
    assert said == ["Removed 1 old job"]  # The other event is behind the baseline.
    assert await verify(rig.store) == []


async def test_queues_may_keep_their_jobs_longer_or_for_ever(rig: Rig) -> None:
    await rig.restart(
        Config(job_retention_ms=DAY, queue_retention_ms={"live": 3 * DAY, "batch": 0})
    )
    numbers = [await rig.submit(queue=queue) for queue in ("default", "live", "batch")]
    await complete(rig, *numbers)
    await rig.advance(2 * DAY)
    await retain(rig)
    assert await job_ids(rig) == numbers[1:]
    await rig.advance(9 * DAY)
    await retain(rig)
    assert await job_ids(rig) == numbers[2:]


async def test_what_an_open_job_depends_on_stays(rig: Rig) -> None:
    await rig.restart(Config(job_retention_ms=DAY))
    first, other = await rig.submit(), await rig.submit()
    blocked = await rig.submit(after=(first,), unblock="manual")
    await complete(rig, first, other)
    await rig.advance(2 * DAY)
    assert (await retain(rig)).jobs == 1
    assert await job_ids(rig) == [first, blocked]
    await rig.engine.jobs.unblock(blocked)
    await complete(rig, blocked)
    await rig.advance(2 * DAY)
    assert (await retain(rig)).jobs == 2
    assert await job_ids(rig) == []


async def test_jobs_of_an_open_workflow_stay_and_go_with_it(rig: Rig) -> None:
    await rig.restart(Config(job_retention_ms=DAY, chunk_rows=2))
    submitted = await rig.submit_all(
        {"name": "a"}, {"name": "b", "after": ("a",)}, {"name": "c", "unblock": "manual"},
        {"name": "d"}, workflow="nightly",
    )  # fmt: skip
    a, b, c, d = submitted.ids
    await complete(rig, a, b, d)
    await rig.advance(2 * DAY)
    assert (await retain(rig)).jobs == 0
    await rig.engine.jobs.unblock(c)
    await complete(rig, c)
    await rig.advance(2 * DAY)
    assert (await retain(rig)).jobs == 4
    snapshot = await rig.snapshot()
    assert (snapshot.jobs, snapshot.workflows, snapshot.dependents) == ((), (), ())
    assert await verify(rig.store) == []


async def test_what_a_name_points_to_stays(rig: Rig) -> None:
    await rig.restart(Config(job_retention_ms=DAY))
    desk = Desk(rig)
    agent = await rig.agent()
    number = await rig.submit()
    (job,) = await agent.take()
    await desk.leave(holder_of(agent, job), "image", b"kept")
    await agent.finish(job)
    await desk.files.set_name("env", number, "image")
    await rig.advance(9 * DAY)
    assert (await retain(rig, desk)).jobs == 0
    assert await desk.fetch(number, "image") == b"kept"


async def test_a_key_is_free_again_when_its_job_is_gone(rig: Rig) -> None:
    await rig.restart(Config(job_retention_ms=DAY))
    first = await rig.submit(key="nightly", key_for="30h")
    await complete(rig, first)
    await rig.advance(29 * HOUR)
    await retain(rig)  # a job is kept as long as its key is its own
    assert await rig.submit(key="nightly") == first
    await rig.advance(2 * DAY)
    await retain(rig)
    second = await rig.submit(key="nightly")
    assert second != first
    assert await job_ids(rig) == [second]


async def everything(rig: Rig) -> None:
    """Jobs and workers in as many states as there are."""
    engine = rig.engine
    agent = await rig.agent("steady", metadata={"system:cpus": 8})
    limit = Concurrency(key="db", max=2)
    for number in range(6):
        await rig.submit(concurrency=limit, queue="live" if number % 2 else "default")
    flow = await rig.submit_all(
        {"name": "a", "allow_failure": True}, {"name": "b", "after": ("a",)},
        {"name": "c", "unblock": "manual"}, workflow="flow",
    )  # fmt: skip
    await rig.submit(retry_on=("execution",), retries=2)
    for number, job in enumerate(await agent.take(want=20)):
        if number % 3 == 0:
            await agent.fail(job)
        elif number % 3 == 1:
            await agent.finish(job)
    await rig.submit(not_before=rig.now + 90 * DAY)
    canceled = await rig.submit()
    await engine.jobs.cancel([canceled])
    await engine.jobs.retry(canceled)
    await engine.jobs.adjust_priority(await rig.submit(), 5)
    await engine.jobs.cancel([await rig.submit()])
    await engine.queues.pause("batch")
    gone = await rig.agent("gone")
    await engine.workers.remove(gone.id)
    await rig.agent("idle")
    assert flow.workflow


async def test_events_become_a_baseline_from_which_verify_replays(rig: Rig) -> None:
    await rig.restart(Config(event_retention_ms=DAY, job_retention_ms=0, chunk_rows=7))
    await everything(rig)
    before = await rig.snapshot()
    events = len(await rig.events())
    assert await verify(rig.store, rig.engine.config) == []
    await rig.advance(2 * DAY)
    assert (await retain(rig)).events == events - 1
    assert len(await rig.events()) == 1
    after = await rig.snapshot()
    assert after._replace(baseline=()) == before
    assert await verify(rig.store, rig.engine.config) == []
    await everything_goes_on(rig)
    assert await verify(rig.store, rig.engine.config) == []


async def everything_goes_on(rig: Rig) -> None:
    """What was open goes on, and is trimmed again."""
    await rig.health()
    agent = await rig.agent("newcomer")
    for _ in range(3):
        for job in await agent.take(want=20):
            await agent.finish(job)
        await rig.advance(HOUR)
        await rig.cleanup()
        assert await verify(rig.store, rig.engine.config) == []
    await rig.advance(2 * DAY)
    await retain(rig)


async def test_only_open_jobs_have_a_place_in_the_baseline(rig: Rig) -> None:
    await rig.restart(Config(event_retention_ms=DAY, job_retention_ms=0))
    done = [await rig.submit() for _ in range(5)]
    await complete(rig, *done)
    waiting = await rig.submit()
    await rig.advance(2 * DAY)
    await retain(rig)
    await rig.submit()
    await rig.advance(2 * DAY)
    await retain(rig)
    rows = [row for row in (await rig.snapshot()).baseline if row.kind == BaselineKind.JOB]
    assert waiting in [row.id for row in rows]
    assert not {row.id for row in rows} & set(done)


async def test_what_is_wrong_is_still_found_behind_a_baseline(memory_rig: Rig) -> None:
    rig = memory_rig
    await rig.restart(Config(event_retention_ms=DAY, job_retention_ms=0))
    await everything(rig)
    await rig.advance(2 * DAY)
    await retain(rig)
    snapshot, events = await rig.snapshot(), await rig.events()
    assert judge(events, snapshot) == []
    still_open = next(row for row in snapshot.jobs if not row.facts.state)
    others = tuple(row for row in snapshot.jobs if row is not still_open)
    wrong = still_open._replace(facts=still_open.facts._replace(adjustment=77))
    tampered = snapshot._replace(jobs=tuple(sorted((*others, wrong))))
    assert {found.invariant for found in judge(events, tampered)} == {"S20"}
    assert judge(events, snapshot._replace(limits=())) == []
    (limit,) = snapshot.limits
    miscounted = snapshot._replace(limits=(limit._replace(leased=limit.leased + 1),))
    assert {found.invariant for found in judge(events, miscounted)} == {"S19"}
    unlogged = others[-1]._replace(facts=others[-1].facts._replace(id=JobId(9_999)))
    found = judge(events, snapshot._replace(jobs=(*snapshot.jobs, unlogged)))
    assert ("S20", 9_999) in {(violation.invariant, violation.job) for violation in found}


@settings(max_examples=by_form(25, 100), suppress_health_check=list(HealthCheck))
@given(script=st.lists(moves, min_size=20, max_size=60), pace=st.integers(1, 9))
def test_at_any_time_the_rest_replays(rigs: Rigs, script: list[Move], pace: int) -> None:
    """Random commands, with everything removed that may be, every few moves."""
    config = Config(event_retention_ms=1, job_retention_ms=1, chunk_rows=5)
    with rigs.open("memory") as rig:
        rig.run(rig.restart(config))
        player = Player(rig)
        for number, move in enumerate(script):
            rig.run(player.play(move))
            if number % pace == 0:
                rig.run(retain(rig))
                assert rig.run(verify(rig.store, config)) == [], f"after move {number}, {move}"


async def test_a_log_that_nobody_completes_is_lost(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    numbers = [await rig.submit() for _ in range(2)]
    done, running = await agent.take(want=2)
    for job in (done, running):
        await desk.files.append_log(holder_of(agent, job), 0, b"something")
    await agent.finish(done)
    assert (await retain(rig, desk)).logs == 0
    await rig.advance(11 * MINUTE)
    assert (await retain(rig, desk)).logs == 1
    states = [(await desk.files.log(number)).row.state for number in numbers]
    assert states == [LogState.LOST, LogState.STREAMING]
    lost = b"something\n[windlass: the rest of the log was lost]\n"
    assert await desk.text(done.job) == lost
    assert (await retain(rig, desk)).logs == 0


async def test_files_that_nothing_speaks_of_go_after_a_day(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    await rig.submit()
    (job,) = await agent.take()
    holder = holder_of(agent, job)
    kept = [f"artifacts/{(d := await desk.leave(holder, 'a', b'kept'))[:2]}/{d}"]
    await desk.files.append_log(holder, 0, b"kept")
    kept += [info.key async for info in desk.blobs.list("logs")]
    stray = hashlib.sha256(b"stray").hexdigest()
    strays = [f"artifacts/{stray[:2]}/{stray}", "logs/999/1/0-1", "uploads/1/1/x"]
    for key in strays:
        await desk.blobs.put(key, b"stray")
    loop = RetentionLoop(rig.engine, desk.blobs)
    assert (await loop.run_once(rig.now)).files == 0
    await rig.advance(DAY + 1)
    assert (await loop.run_once(rig.now)).files == 3
    assert sorted([info.key async for info in desk.blobs.list("")]) == sorted(kept)


async def test_a_log_that_its_server_left_in_small_segments_is_joined(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    for _ in range(2):
        await rig.submit()
    ended, open_still = await agent.take(want=2)
    for job in (ended, open_still):
        for number in range(40):
            await desk.files.append_log(holder_of(agent, job), 2 * number, b"ab")
    # The server that would have joined them dies, and knows nothing of them afterwards.
    after = Desk(rig)
    after.blobs = desk.blobs
    after.files = Files(rig.engine, desk.blobs)
    await after.files.end_log(holder_of(agent, ended), 80, "committed")
    await agent.finish(ended)
    assert (await retain(rig, after)).joined == 0
    await rig.advance(DAY + 1)
    assert (await retain(rig, after)).joined == 1
    counts = [len(await keys_of(after, job.job)) for job in (ended, open_still)]
    assert counts == [2, 40]  # joined, with its times
    assert await after.text(ended.job) == b"ab" * 40
    assert (await retain(rig, after)).joined == 0


async def keys_of(desk: Desk, job: int) -> list[str]:
    return [info.key async for info in desk.blobs.list(f"logs/{job}")]


async def test_the_files_of_a_removed_job_go_too(rig: Rig) -> None:
    await rig.restart(Config(job_retention_ms=DAY))
    desk = Desk(rig)
    agent = await rig.agent()
    await rig.submit()
    (job,) = await agent.take()
    await desk.leave(holder_of(agent, job), "a", b"x")
    await desk.files.append_log(holder_of(agent, job), 0, b"x")
    await agent.finish(job)
    await rig.advance(3 * DAY)
    report = await retain(rig, desk)
    assert (report.jobs, report.files) == (1, 2)
    assert [info async for info in desk.blobs.list("")] == []


async def test_two_servers_share_the_work(rig: Rig) -> None:
    if rig.kind == "sqlite":
        return  # One server works on a file.
    import asyncio

    await rig.restart(Config(event_retention_ms=DAY, job_retention_ms=DAY, chunk_rows=3))
    numbers = [await rig.submit() for _ in range(20)]
    await complete(rig, *numbers)
    await rig.submit()
    await rig.advance(3 * DAY)
    other = await rig.another_engine()
    blobs = Desk(rig).blobs
    loops = [RetentionLoop(engine, blobs) for engine in (rig.engine, other)] * 3
    await asyncio.gather(*(loop.run_once(rig.now) for loop in loops))
    assert await verify(rig.store) == []
    await loops[0].run_once(rig.now)  # Whoever found another at work has left it to that one.
    assert len(await job_ids(rig)) == 1
    assert await verify(rig.store) == []


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([], []), ([4], [(4, 4)]), ([1, 2, 3, 5, 7, 8], [(1, 3), (5, 5), (7, 8)])],
)
def test_numbers_are_told_as_spans(numbers: list[int], expected: Any) -> None:
    assert spans(numbers) == expected


async def test_a_workflow_that_never_had_a_job_goes_too(rig: Rig) -> None:
    empty = await submit_flow(rig, key="k")
    await rig.advance(DAY)
    young = await submit_flow(rig)
    await rig.advance(29 * DAY + 1)
    await retain(rig)
    assert [row.id for row in (await rig.snapshot()).workflows] == [young.workflow]
    assert await verify(rig.store) == []
    again = await submit_flow(rig, key="k")
    assert again.workflow != empty.workflow


async def test_the_audit_log_and_ended_sessions_go_by_their_own_setting(rig: Rig) -> None:
    async def fill(tx: WriteTx) -> None:
        done = AuditRow(0, rig.now, 1, 200, 1, "a", "admin", "", "POST /x", "/x", "", "", "r", "")
        await tx.audit.append([done, done._replace(at=rig.now + DAY)])
        kinds = (("s", "session"), ("t", "token"))
        for name, kind in kinds:
            row = Token(0, name, name, "viewer", (), 0, rig.now, rig.now + HOUR, 0, kind=kind)
            await tx.access.insert(row)

    await rig.store.transact(fill)
    await rig.restart(Config(audit_retention_ms=10 * DAY))
    await rig.advance(7 * DAY)
    assert (await retain(rig)).audit == 0
    await rig.advance(2 * HOUR)
    assert (await retain(rig)).audit == 1
    assert [row.name for row in (await rig.snapshot()).tokens] == ["t"]
    await rig.advance(3 * DAY)
    assert (await retain(rig)).audit == 1
    rows = await rig.store.read(lambda tx: tx.audit.read(0, 0, (), 10))
    assert [row.id for row in rows] == [2]
    await rig.restart(Config(audit_retention_ms=0))
    await rig.advance(1_000 * DAY)
    assert (await retain(rig)).audit == 0

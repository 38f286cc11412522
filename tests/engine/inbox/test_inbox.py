"""Committed submissions become jobs, each once, whichever server moves them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import msgspec
import pytest
from structlog.testing import capture_logs

from tests.engine.support.rig import HOUR, Rig
from windlass.domain.access.policy import AccessPolicy
from windlass.domain.access.rights import Identity, Role
from windlass.domain.config import Config
from windlass.domain.rows.records import InboxRow
from windlass.domain.values.errors import NotFound
from windlass.engine.engine import Engine
from windlass.engine.history.retention import trim_aliases
from windlass.engine.inbox import Inbox, InboxRequest
from windlass.engine.loops.planning import InboxLoop
from windlass.engine.transaction.unit_of_work import Work
from windlass.operations.jobs import Submissions
from windlass.operations.queries import Queries
from windlass.store.sql.transaction import WriteTx

T = TypeVar("T")
ADMIN = Identity(1, "root", Role.ADMIN)
JOB = {"task": "t", "args": {"n": 1}}


def inbox_of(engine: Engine) -> Inbox:
    return Inbox(engine, Submissions(engine, Queries(engine)).read_inbox)


async def put(
    rig: Rig, *jobs: dict[str, Any], namespaces: Sequence[str] = (), **more: Any
) -> tuple[int, ...]:
    """Writes a row as a user's transaction does, and returns the ids of its jobs."""
    body = msgspec.json.encode({"jobs": jobs, **more})

    async def write(tx: WriteTx) -> tuple[int, ...]:
        ids = tuple(await tx.jobs.allocate(len(jobs)))
        row = InboxRow(0, tx.now, ids, "role:app", tuple(namespaces), body)
        await tx.inbox.put([row])
        return ids

    return await rig.store.transact(write)


async def test_a_row_becomes_jobs_with_the_ids_that_were_promised(rig: Rig) -> None:
    first = await put(rig, JOB)
    graph = await put(
        rig, {**JOB, "name": "b", "after": ["a"]}, {**JOB, "name": "a", "after": list(first)}
    )
    report = await InboxLoop(rig.engine, inbox_of(rig.engine)).run_once(rig.now)
    assert report.moved == 2
    snapshot = await rig.snapshot()
    assert snapshot.inbox == ()
    assert [job.facts.id for job in snapshot.jobs] == [*first, *graph]
    shown = await Queries(rig.engine).job(graph[1], ADMIN)
    assert (shown.name, shown.after, shown.submitted_by) == ("b", [graph[0]], "role:app")


@pytest.mark.parametrize("rig", ["memory", "postgres"], indirect=True)
async def test_servers_that_move_at_the_same_time_write_each_job_once(rig: Rig) -> None:
    other = await rig.another_engine()
    ids = [job for _ in range(20) for job in await put(rig, JOB)]
    ids += [job for n in range(20) for job in await put(rig, {**JOB, "name": f"n{n}"})]
    await asyncio.gather(inbox_of(rig.engine).move(), inbox_of(other).move())
    snapshot = await rig.snapshot()
    assert sorted(job.facts.id for job in snapshot.jobs) == ids
    assert len(snapshot.ready) == len(ids)


async def test_what_is_refused_is_a_rejected_job_that_says_why(rig: Rig) -> None:
    (wrong,) = await put(rig, {**JOB, "retries": -1})
    (missing,) = await put(rig, {**JOB, "after": [999]})
    (foreign,) = await put(rig, {**JOB, "namespace": "bank"}, namespaces=["shop"])
    (unknown,) = await put(rig, {**JOB, "colour": 1})
    (good,) = await put(rig, JOB)
    await inbox_of(rig.engine).move()
    queries = Queries(rig.engine)
    reasons = {}
    for job in (wrong, missing, foreign, unknown):
        shown = await queries.job(job, ADMIN)
        assert shown.state == "rejected"
        reasons[job] = str(shown.reason)
    assert "retries" in reasons[wrong]
    assert "999" in reasons[missing]
    assert "bank" in reasons[foreign]
    assert "colour" in reasons[unknown]
    assert (await queries.job(foreign, ADMIN)).namespace == "shop"
    assert (await queries.job(good, ADMIN)).state == "queued"
    assert (await rig.snapshot()).inbox == ()


async def test_a_row_has_the_rights_of_a_submitter(rig: Rig) -> None:
    policy = AccessPolicy(submitter_priority_max=1)
    engine = await rig.restart(Config(access=policy))
    (job,) = await put(rig, {**JOB, "priority": 9})
    await inbox_of(engine).move()
    assert "from" in str((await Queries(engine).job(job, ADMIN)).reason)


async def test_an_id_whose_key_was_taken_leads_to_the_job_that_has_it(rig: Rig) -> None:
    (first,) = await put(rig, {**JOB, "key": "k"})
    (second,) = await put(rig, {**JOB, "key": "k"})
    (waits,) = await put(rig, {**JOB, "after": [second]})
    inbox = inbox_of(rig.engine)
    await inbox.move()
    queries = Queries(rig.engine, inbox)
    assert (await queries.job(second, ADMIN)).id == first
    assert (await queries.job(waits, ADMIN)).after == [first]
    await rig.advance(960 * HOUR)
    assert await rig.engine.run(trim_aliases) == 1


class WithFastWorker:
    """The engine beside a worker that has ended a job before the next command begins."""

    def __init__(self, engine: Engine, job: int) -> None:
        self._engine = engine
        self._job = job

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def run(self, work: Callable[[Work], Awaitable[T]]) -> T:
        answer = await self._engine.run(work)
        await self._engine.jobs.cancel([self._job])
        return answer


async def test_a_key_of_one_transaction_is_one_job_even_if_that_ends_at_once(rig: Rig) -> None:
    (first,) = await put(rig, {**JOB, "key": "k"})
    (second,) = await put(rig, {**JOB, "key": "k"})
    (other,) = await put(rig, {**JOB, "key": "k", "args": {"n": 2}})
    engine = cast("Engine", WithFastWorker(rig.engine, first))
    inbox = inbox_of(engine)
    await inbox.move()
    queries = Queries(engine, inbox)
    assert (await queries.job(second, ADMIN)).id == first
    assert (await queries.job(first, ADMIN)).state == "canceled"
    refused = await queries.job(other, ADMIN)
    assert (refused.state, "other arguments" in str(refused.reason)) == ("rejected", True)
    (later,) = await put(rig, {**JOB, "key": "k", "args": {"n": 2}})
    await inbox.move()
    assert (await queries.job(later, ADMIN)).state == "queued"


async def test_a_workflow_with_a_key_that_is_open_is_not_made_twice(rig: Rig) -> None:
    workflow = {"name": "w", "key": "k"}
    first = await put(rig, {**JOB, "name": "a"}, workflow=workflow)
    second = await put(rig, {**JOB, "name": "a"}, workflow=workflow)
    inbox = inbox_of(rig.engine)
    await inbox.move()
    assert len((await rig.snapshot()).workflows) == 1
    assert (await Queries(rig.engine, inbox).job(second[0], ADMIN)).id == first[0]


async def test_a_job_that_is_looked_up_is_moved_first(rig: Rig) -> None:
    (job,) = await put(rig, JOB)
    queries = Queries(rig.engine, inbox_of(rig.engine))
    assert (await queries.job(job, ADMIN)).state == "queued"


DEEP: Any = None
for _ in range(900):  # deeper than Python can follow in code that calls itself for each level
    DEEP = [DEEP]


async def test_a_row_that_nobody_can_read_is_one_rejected_row(rig: Rig) -> None:
    (deep,) = await put(rig, {**JOB, "args": {"n": DEEP}})
    (named,) = await put(rig, {**JOB, "name": "n", "args": {"n": DEEP}})
    body = b'{"jobs": ' + b"[" * 3_000 + b"]" * 3_000 + b"}"
    deeper = await _put_body(rig, body)
    broken = await _put_body(rig, b'{"jobs": [{"task": "t", "labels": {"\\ud800": "x"}}]')
    (good,) = await put(rig, JOB)
    inbox = inbox_of(rig.engine)
    assert await inbox.move() == 5
    queries = Queries(rig.engine, inbox)
    for job in (deep, named, deeper):
        shown = await queries.job(job, ADMIN)
        assert shown.state == "rejected"
        assert "at most 100 lists and objects inside one another" in str(shown.reason)
    assert (await queries.job(broken, ADMIN)).state == "rejected"
    assert (await queries.job(good, ADMIN)).state == "queued"
    with pytest.raises(NotFound):
        await queries.job(good + 1, ADMIN)
    assert (await rig.snapshot()).inbox == ()


async def test_a_row_whose_reading_fails_in_any_way_holds_up_no_other(rig: Rig) -> None:
    (bad,) = await put(rig, {**JOB, "name": "bad"})
    (good,) = await put(rig, JOB)
    read = Submissions(rig.engine, Queries(rig.engine)).read_inbox

    async def read_or_fail(row: InboxRow) -> InboxRequest:
        if row.jobs == (bad,):
            raise KeyError("a bug")
        return await read(row)

    with capture_logs() as logged:
        await Inbox(rig.engine, read_or_fail).move()
    assert [entry["event"] for entry in logged if entry["log_level"] != "debug"] == [
        "inbox_refused"
    ]
    shown = await Queries(rig.engine).job(bad, ADMIN)
    assert (shown.state, "KeyError: 'a bug'" in str(shown.reason)) == ("rejected", True)
    assert (await Queries(rig.engine).job(good, ADMIN)).state == "queued"


async def test_the_age_of_the_oldest_row_is_known(rig: Rig) -> None:
    inbox = inbox_of(rig.engine)
    assert await inbox.waiting_ms() == 0
    await put(rig, JOB)
    await rig.advance(HOUR)
    await put(rig, JOB)
    assert await inbox.waiting_ms() == HOUR
    await inbox.move()
    assert await inbox.waiting_ms() == 0


async def test_a_row_that_cannot_even_be_refused_stays_and_holds_up_no_other(rig: Rig) -> None:
    (taken,) = await put(rig, JOB)
    inbox = inbox_of(rig.engine)
    await inbox.move()
    await _put_body(rig, msgspec.json.encode({"jobs": [JOB]}), taken)
    (good,) = await put(rig, JOB)
    with capture_logs() as logged:
        await inbox.move()
        await inbox.move()
    told = [entry["event"] for entry in logged if entry["log_level"] != "debug"]
    assert told == ["inbox_refused", "inbox_stuck"]
    assert (await Queries(rig.engine).job(good, ADMIN)).state == "queued"
    assert [row.jobs for row in (await rig.snapshot()).inbox] == [(taken,)]


async def _put_body(rig: Rig, body: bytes, known: int = 0) -> int:
    async def write(tx: WriteTx) -> int:
        job = known or (await tx.jobs.allocate(1))[0]
        await tx.inbox.put([InboxRow(0, tx.now, (job,), "role:app", (), body)])
        return job

    return await rig.store.transact(write)

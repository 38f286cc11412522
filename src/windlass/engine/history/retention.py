"""The steps of retention: remove old jobs, turn old events into a baseline, mark lost logs.

Each step is one transaction on a bounded number of rows, and one server at a time runs it. Every
removal keeps what `verify` needs to replay the rest. An operator can delete single jobs earlier.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

from windlass.domain.config import Config
from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.workflow_state import ENDED, FORGIVEN, WorkflowState, ended_badly
from windlass.domain.rows.events import BaselineKind, Event, EventKind
from windlass.domain.rows.files import LogState
from windlass.domain.rows.records import JobFacts
from windlass.domain.rows.series import HOUR, MINUTE, TEN_MINUTES, SeriesKind
from windlass.domain.values.errors import Overloaded
from windlass.domain.values.quantities import counted
from windlass.engine.attempts.log_segments import UNKNOWN
from windlass.engine.attempts.writes import end_log
from windlass.engine.history.series import note_shapes
from windlass.engine.jobs.unique_keys import bound_jobs, bound_workflows
from windlass.engine.transaction.unit_of_work import Work
from windlass.engine.verify.baseline import dump, load
from windlass.engine.verify.past import Findings, SnapshotIndex
from windlass.engine.verify.replay import Replay
from windlass.messages.jobs import DeletedJob
from windlass.store.sql.retention import Ended
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import WriteTx

JOB: Final = int(EventKind.JOB)
SETTLED_MS: Final = 3_600_000  # among younger events, some with lower numbers may still appear
NEWEST: Final = 2**62  # above all ids
SESSION_KEPT_MS: Final = 7 * 86_400_000  # how long a session is listed after its end
LOG_GRACE_MS: Final = 600_000  # how long the rest of a log may arrive after its attempt
_TRIMMED: Final = (
    SeriesKind.WORK, SeriesKind.WORKERS, SeriesKind.POOL, SeriesKind.PLAN, SeriesKind.MARK,
)  # fmt: skip
AGAIN_MS: Final = 1_000  # while another server is removing old jobs


class Walk(NamedTuple):
    """How many rows a step removed or changed, and where the next one continues, if anywhere."""

    done: int
    next: int | None


async def remove_jobs(work: Work, after: int | None) -> Walk:
    """Removes the next jobs after `after` that ended long enough ago and are not needed."""
    if not await work.tx.retention.try_lock():
        return Walk(0, None)
    cutoffs = _Cutoffs(work)
    if not cutoffs.latest:
        return Walk(0, None)
    count = work.config.chunk_rows
    ended, following = await work.tx.retention.ended(after or 0, cutoffs.latest, count)
    await work.catalog.know(work.tx, {row.shape for row in ended})
    old = [row.job for row in ended if cutoffs.passed(row)]
    if not old:
        return Walk(0, following or None)
    facts = await work.tx.jobs.lock(old)
    needed = await needed_jobs(work, list(facts)) | await bound_jobs(work, facts)
    free = {job: fact for job, fact in facts.items() if not fact.is_open and job not in needed}
    gone = await _without_keys(work, await outside_open_workflows(work, free))
    await remove_rows(work, gone, f"Removed {counted(len(gone), 'old job')}", "retention")
    return Walk(len(gone), following or None)


class _Cutoffs:
    """The time before which a job must have ended to be removed, by queue."""

    def __init__(self, work: Work) -> None:
        config = work.config
        self._work = work
        self._default = self._before(config.job_retention_ms)
        self._queues = {q: self._before(ms) for q, ms in config.queue_retention_ms.items()}
        self.latest = max([self._default, *self._queues.values()])

    def _before(self, keep_ms: int) -> int:
        return self._work.now - keep_ms if keep_ms else 0

    def passed(self, row: Ended) -> bool:
        queue = self._work.catalog.queue_of(row.shape)
        return row.finished_at < self._queues.get(queue, self._default)


async def needed_jobs(work: Work, jobs: Sequence[int]) -> set[int]:
    """Returns the jobs that open jobs depend on, a cascade refers to, or a name points to."""
    tx = work.tx
    needed = {row.known_job for row in await tx.workflows.cascades_of(jobs)}
    needed |= {row.job for row in await tx.files.names(None)}
    chunk = 0
    while found := await tx.jobs.dependents(jobs, chunk):
        waiting = sorted({edge >> 1 for edges in found.values() for edge in edges})
        facts = await tx.jobs.read(waiting)
        open_jobs = {job for job, fact in facts.items() if fact.is_open}
        for job, edges in found.items():
            if any(edge >> 1 in open_jobs for edge in edges):
                needed.add(job)
        chunk += 1
    return needed


async def outside_open_workflows(work: Work, facts: Mapping[int, JobFacts]) -> dict[int, JobFacts]:
    """Returns which of the jobs are in no workflow, or in one that has ended."""
    workflows = sorted({fact.workflow for fact in facts.values() if fact.workflow is not None})
    rows = await work.tx.workflows.lock(workflows)
    ended = {number for number, row in rows.items() if WorkflowState(row.state) in ENDED}
    return {job: f for job, f in facts.items() if f.workflow is None or f.workflow in ended}


async def _without_keys(work: Work, facts: Mapping[int, JobFacts]) -> dict[int, JobFacts]:
    """Leaves out jobs of workflows that still hold a key."""
    workflows = sorted({fact.workflow for fact in facts.values() if fact.workflow is not None})
    bound = await bound_workflows(work, await work.tx.workflows.read(workflows))
    return {job: fact for job, fact in facts.items() if fact.workflow not in bound}


async def remove_empty_workflows(work: Work, after: int | None) -> Walk:
    """Removes ended workflows that never had a job, newest first, from number `after`."""
    keep_ms = work.config.job_retention_ms
    if not keep_ms or not await work.tx.retention.try_lock():
        return Walk(0, None)
    count = work.config.chunk_rows
    rows = await work.tx.workflows.newest(after or NEWEST, count)
    before = work.now - keep_ms
    ended = [row for row in rows if row.finished_at is not None and row.finished_at < before]
    empty = sorted(row.id for row in ended if not any(row.counts))
    locked = await work.tx.workflows.lock(empty) if empty else {}
    kept = await bound_workflows(work, locked)
    gone = [
        number
        for number, row in locked.items()
        if row.finished_at is not None and not any(row.counts) and number not in kept
    ]
    if gone:
        await work.tx.retention.remove_workflows(gone)
    return Walk(len(gone), rows[-1].id if len(rows) == count else None)


async def remove_rows(work: Work, facts: Mapping[int, JobFacts], text: str, actor: str) -> None:
    """Removes jobs, which are locked and not needed, and records it in the log."""
    if not facts:
        return
    counts: dict[int, dict[int, int]] = {}
    for fact in facts.values():
        if fact.workflow is not None and not fact.superseded_by:
            change = counts.setdefault(fact.workflow, {})
            ended = fact.final_state
            change[ended] = change.get(ended, 0) - 1
            if ended_badly(ended) and fact.flags & ALLOW_FAILURE:
                change[FORGIVEN] = change.get(FORGIVEN, 0) - 1
    await work.tx.retention.remove_jobs(sorted(facts))
    if counts:
        await work.tx.workflows.bump(counts)
    workflows = sorted({fact.workflow for fact in facts.values() if fact.workflow is not None})
    await work.tx.retention.remove_workflows(workflows)
    work.say(
        EventKind.LOOP,
        text,
        actor=actor,
        data={"removed": spans(sorted(facts))},
    )


def spans(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Returns ascending numbers as (first, last) of each unbroken run."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


async def trim_events(work: Work) -> int:
    """Turns the oldest events into a baseline if they are old enough; returns how many."""
    keep_ms = work.config.event_retention_ms
    if not keep_ms or not await work.tx.retention.try_lock():
        return 0
    cutoff = work.now - max(keep_ms, SETTLED_MS)
    events = await work.tx.log.read(0, work.config.chunk_rows + 1)
    old = _oldest(events[:-1], cutoff)  # The newest event always stays.
    if not old:
        return 0
    await _move_baseline(work, old)
    return await work.tx.retention.trim_events(old[-1].seq)


async def forget_commits(work: Work) -> int:
    """Removes records of commits that nobody will ask about any more; returns 0."""
    if await work.tx.retention.try_lock():
        await work.tx.retention.forget_commits()
    return 0


def _trim(
    keep_ms: Callable[[Config], int],
    rows: Callable[[WriteTx], Callable[[int, int], Awaitable[int]]],
) -> Callable[[Work], Awaitable[int]]:
    """Makes a step that removes rows from before a time; 0 keeps them for ever.

    Each step returns how many it removed.
    """

    async def step(work: Work) -> int:
        kept = keep_ms(work.config)
        if not kept or not await work.tx.retention.try_lock():
            return 0
        return await rows(work.tx)(work.now - kept, work.config.chunk_rows)

    return step


# Runs, reactions and aliases are kept as long as jobs; uploads while a job uses them, and longer.
trim_runs = _trim(lambda config: config.job_retention_ms, lambda tx: tx.schedules.trim_runs)
trim_reactions = _trim(lambda config: config.job_retention_ms, lambda tx: tx.reactions.trim)
trim_aliases = _trim(lambda config: config.job_retention_ms, lambda tx: tx.inbox.trim_aliases)
trim_uploads = _trim(lambda config: config.upload_retention_ms, lambda tx: tx.files.trim_uploads)
trim_signals = _trim(lambda config: config.signal_retention_ms, lambda tx: tx.steps.drop_signals)


async def trim_audit(work: Work) -> int:
    """Removes old rows of the audit log, and sessions that ended a while ago; returns how many."""
    keep_ms = work.config.audit_retention_ms
    if not await work.tx.retention.try_lock():
        return 0
    count = work.config.chunk_rows
    sessions = await work.tx.access.trim_sessions(work.now - SESSION_KEPT_MS, count)
    if not keep_ms:
        return sessions
    return sessions + await work.tx.audit.trim(work.now - keep_ms, count)


async def trim_series(work: Work) -> int:
    """Removes expired series; returns how many rows."""
    if not await work.tx.retention.try_lock():
        return 0
    config, now, count = work.config, work.now, work.config.chunk_rows
    keep = {
        MINUTE: config.series_detail_ms,
        TEN_MINUTES: 7 * config.series_detail_ms,
        HOUR: config.series_retention_ms,
    }
    done = 0
    for step, keep_ms in keep.items():
        if keep_ms:
            for kind in _TRIMMED:
                done += await work.tx.series.trim(kind, step, now - keep_ms, count)
    return done


def _oldest(events: Sequence[Event], cutoff: int) -> Sequence[Event]:
    for place, event in enumerate(events):
        if event.at >= cutoff:
            return events[:place]
    return events


async def _move_baseline(work: Work, events: Sequence[Event]) -> None:
    """Replays these events from the baseline and writes the resulting state."""
    retention = work.tx.retention
    jobs = sorted({event.job for event in events if event.job})
    records = await retention.records(jobs)
    empty = Snapshot(*((),) * (len(Snapshot._fields) - len(Snapshot._field_defaults)))
    replay = Replay(SnapshotIndex(empty._replace(jobs=tuple(records))), Findings())
    wanted = {
        BaselineKind.HEAD: [0],
        BaselineKind.JOB: jobs,
        BaselineKind.WORKER: sorted({event.worker for event in events}),
        BaselineKind.LIMIT: sorted({r.facts.limit for r in records if r.facts.limit is not None}),
        BaselineKind.WORKFLOW: _workflows_in(events, replay),
    }
    rows = [row for kind, ids in wanted.items() for row in await retention.baseline(kind, ids)]
    load(replay, rows, counting=False)
    begun = {event.job for event in events if event.kind == JOB and event.source == 0}
    open_before = set(replay.past.jobs)
    for event in events:
        replay.apply(event)
    # For a job that ended before the baseline, its row says the same.
    for job in set(replay.past.jobs) - open_before - begun:
        del replay.past.jobs[job]
    past = replay.past
    existing = await work.tx.workflows.lock(sorted(past.workflows))
    past.workflows = {n: named for n, named in past.workflows.items() if n in existing}
    past.newest_trimmed_job = max([past.newest_trimmed_job, *begun])
    kept = dump(past)
    await retention.drop_baseline(BaselineKind.JOB, kept.ended)
    await retention.put_baseline(kept.rows)


def _workflows_in(events: Sequence[Event], replay: Replay) -> list[int]:
    """Returns the workflows that these events are about."""
    joined = {record.facts.workflow for record in replay.known.jobs.values()}
    mine = {workflow for workflow in joined if workflow is not None}
    named = {replay.workflow_of(event) for event in events if event.kind == EventKind.WORKFLOW}
    return sorted(mine | named)


async def lose_logs(work: Work, after: int | None) -> Walk:
    """Marks logs as lost that nobody will complete: their attempts ended some time ago."""
    rows = await work.tx.files.streaming(after or 0, work.config.chunk_rows)
    if not rows:
        return Walk(0, None)
    jobs = sorted({row.job for row in rows})
    leases = await work.tx.leases.lock(jobs)
    ends = await _ends(work, jobs)
    lost = 0
    for row in rows:
        lease = leases.get(row.job)
        if lease is not None and lease.attempt == row.attempt:
            continue
        if ends.get((row.job, row.attempt), 0) < work.now - LOG_GRACE_MS:
            await end_log(work, row, row.bytes + UNKNOWN, LogState.LOST, None)
            lost += 1
    return Walk(lost, rows[-1].job if len(rows) == work.config.chunk_rows else None)


async def _ends(work: Work, jobs: Sequence[int]) -> dict[tuple[int, int], int]:
    """Returns when each attempt of these jobs ended."""
    ends: dict[tuple[int, int], int] = {
        (record.facts.id, record.facts.attempt): record.finished_at
        for record in await work.tx.retention.records(jobs)
        if record.finished_at is not None
    }
    for job, attempts in (await work.tx.jobs.attempts(jobs)).items():
        ends.update({(job, row.number): row.finished_at for row in attempts})
    return ends


async def delete_jobs(work: Work, jobs: Sequence[int], actor: str | None) -> list[DeletedJob]:
    """Deletes the jobs among these that have ended and that nothing needs any more.

    Their logs and artifacts go with them; the next round of retention that looks for orphaned files
    removes the files.
    """
    if not await work.tx.retention.try_lock():
        raise Overloaded(AGAIN_MS)
    facts = await work.tx.jobs.lock(sorted(set(jobs)))
    ended = {job: fact for job, fact in facts.items() if not fact.is_open}
    needed = await needed_jobs(work, list(ended))
    free = {job: fact for job, fact in ended.items() if job not in needed}
    gone = await outside_open_workflows(work, free)
    await note_shapes(work, gone)
    await remove_rows(work, gone, f"Deleted {counted(len(gone), 'job')}", actor or "operator")

    def answer(job: int) -> DeletedJob:
        if job in gone:
            return DeletedJob(job, True)
        if job not in facts:
            return DeletedJob(job, False)
        if job not in ended:
            return DeletedJob(job, False, "it has not ended: cancel it first")
        if job in needed:
            return DeletedJob(job, False, "an open job depends on it, or a name points to it")
        return DeletedJob(job, False, "its workflow has not ended")

    return [answer(job) for job in jobs]

"""`engine.jobs`: commands about single jobs; `engine.bulk`: one command for many, by a filter.

Bulk commands take one page at a time. Pages go from newest to oldest, so they do not include jobs
made by the retries. The caller continues from `next` until it is None.

A running job may add jobs to its own workflow, fenced by its attempt. We check the lease in the
transaction that writes the children, so an attempt that lost its lease cannot add any. A key is
unique in the workflow: a second attempt, or a job that supersedes the first, gets the existing
children as the answer.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from windlass.domain.job.dependency_graph import ids_in
from windlass.domain.job.job import DEFAULT_NAMESPACE, JobSpec, decode_spec
from windlass.domain.job.validation import ValidatedJob
from windlass.domain.lifecycle.states import RUNNING, State, can_supersede
from windlass.domain.rows.records import JobFacts, JobRecord
from windlass.domain.rows.views import JobFilter
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound, WindlassError, existing
from windlass.engine.attempts.writes import is_held, lease_lost
from windlass.engine.commands.submit import SubmitCommand
from windlass.engine.history.retention import delete_jobs
from windlass.engine.jobs.cancel import cancel
from windlass.engine.jobs.decide import unblock
from windlass.engine.jobs.end_waiters import Ended, EndWaiters
from windlass.engine.jobs.priority import adjust, inherited_levels
from windlass.engine.jobs.supersede import ChangedArgs, check_references
from windlass.engine.submit.submission import Submission, Submitted, rows_of
from windlass.engine.submit.write_jobs import submit
from windlass.engine.transaction.arguments import check_id, check_text, check_whole
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.group_commit import RunStep
from windlass.engine.transaction.unit_of_work import Work
from windlass.engine.workflows import CascadeRunner, retry_one
from windlass.messages.jobs import BulkReply, CanceledJob, DeletedJob, RefusedJob, RetryReply
from windlass.ports.gateway import Holder
from windlass.ports.loop_time import PAGE, LongList, aside, pages
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store

PART: Final = 500  # jobs of one call
REPORTED: Final = 20  # refusals named in an answer
OPEN: Final = tuple(
    sorted(
        state.code
        for state in (
            State.BLOCKED, State.QUEUED, State.ASSIGNED, State.RUNNING, State.TIMED_OUT,
            State.RETRYING, State.SUSPENDED,
        )
    )
)  # fmt: skip
RETRIED: Final = (State.FAILED.code,)  # the default actor
RETRYABLE: Final = tuple(sorted(state.code for state in State if can_supersede(state)))
# Returns why the caller may not change some of the jobs, by their ids.
Refuse = Callable[[Sequence[JobRecord]], Awaitable[Mapping[int, str]]]
APART = "\x1d"  # does not occur in keys of users


class Position(NamedTuple):
    """A job's priority, its score (the highest goes first), and what its dependents add to it."""

    base: int
    adjustment: int
    score: float
    inherited: float


@dataclass(eq=False)
class Jobs:
    """Cancels, retries, unblocks and prioritizes jobs, and waits for them.

    Commands return only after the dependents of the affected jobs are updated, too.
    """

    _store: Store
    _catalog: Catalog
    _run: RunStep
    _cascades: CascadeRunner
    _end_waiters: EndWaiters
    _submissions: SubmitCommand

    async def cancel(
        self, jobs: Sequence[int], reason: str = "Canceled", actor: str | None = None
    ) -> list[CanceledJob]:
        """Cancels jobs, many of them in several transactions."""
        ordered = await aside(len(jobs), lambda: _newest_first(jobs))
        check_text("reason", reason)
        check_text("actor", actor)
        found: dict[int, CanceledJob] = {}
        for some in pages(ordered, PAGE):
            done = await self._run(
                partial(cancel, jobs=some, reason=reason, actor=actor), len(some)
            )
            found.update(zip(some, done, strict=True))
        await self._cascades.settled()
        return await aside(len(jobs), lambda: LongList(found[job] for job in jobs))

    async def retry(
        self, job: int, actor: str | None = None, not_before: int | None = None
    ) -> RetryReply:
        """Supersedes an ended job by a new one, which may start at `not_before` (ms)."""
        check_id("job", job)
        check_text("actor", actor)
        # the end of this job may not have reached its dependents yet
        await self._cascades.settled()
        superseded = await self._run(lambda work: retry_one(work, job, actor, not_before))
        await self._cascades.settled()
        return superseded

    async def retry_with(self, job: int, args: Any, actor: str | None = None) -> RetryReply:
        """Supersedes an ended job by a new one with other arguments."""
        check_id("job", job)
        check_text("actor", actor)
        await self._cascades.settled()
        bodies = await self._store.read(lambda tx: tx.jobs.specs([job]))
        if job not in bodies:
            raise NotFound("job", job)
        spec = decode_spec(bodies[job])
        check_references(spec.args, args)
        alone = replace(spec, args=args, after=(), after_any=(), run_if=None, workflow=None)
        (valid,) = self._submissions.validate([replace(alone, key=None, submitted_by=None)])
        changed = ChangedArgs(valid.spec.args, valid.shape)
        done = await self._run(lambda work: retry_one(work, job, actor, None, changed))
        if not done.applied:
            raise Conflict("superseded", f"job {job} was already retried, as job {done.id}")
        await self._cascades.settled()
        return done

    async def unblock(
        self, job: int, accept: bool = True, reason: str = "Rejected", actor: str | None = None
    ) -> bool:
        """Releases a job that waits for an operator, or aborts it.

        Returns whether that changed anything.
        """
        check_id("job", job)
        check_text("reason", reason)
        check_text("actor", actor)
        done = await self._run(lambda work: unblock(work, job, accept, reason, actor))
        await self._cascades.settled()
        return done

    async def adjust_priority(self, job: int, adjustment: int, actor: str | None = None) -> bool:
        """Sets a job's priority adjustment; returns whether that changed anything."""
        check_id("job", job)
        check_whole("adjustment", adjustment)
        check_text("actor", actor)
        applied = await self._run(lambda work: adjust(work, job, adjustment, actor))
        await self._cascades.settled()
        return applied

    async def delete(self, jobs: Sequence[int], actor: str | None = None) -> list[DeletedJob]:
        """Deletes ended jobs that nothing needs any more, with their logs and artifacts.

        Many of them are deleted in several transactions.
        """
        await aside(len(jobs), lambda: _check_ids(jobs))
        check_text("actor", actor)
        found: dict[int, DeletedJob] = {}
        for some in pages(list(dict.fromkeys(jobs)), PAGE):
            done = await self._run(partial(delete_jobs, jobs=some, actor=actor), len(some))
            found.update(zip(some, done, strict=True))
        return await aside(len(jobs), lambda: LongList(found[job] for job in jobs))

    async def submit_children(self, holder: Holder, jobs: Sequence[JobSpec], key: str) -> Submitted:
        """Submits jobs on behalf of a running job into its workflow, fenced by its lease.

        Submitting again with the same `key` in this workflow returns the first answer.
        """
        if not jobs:
            raise InvalidInput("jobs", "at least one job", 0)
        check_text("key", key)
        now, parent = await self._store.read(lambda tx: _facts_now(tx, holder.job))
        if parent is None:
            raise NotFound("job", holder.job)
        namespace = await self.namespace_of(holder.job)
        children = await aside(len(jobs), lambda: as_children(jobs, parent, namespace))
        checked = await self._submissions.validate_in_steps(children, now)
        done = await self._run(
            lambda work: submit_children(work, holder, checked, key), rows_of(checked)
        )
        return done._replace(workflow=parent.workflow)

    async def wait_some_ended(
        self, jobs: Sequence[int], timeout_ms: int, enough: Callable[[Ended], bool]
    ) -> Ended:
        """Waits until enough of these jobs have ended, and returns those that have."""
        for job in jobs:
            check_id("job", job)
        return await self._end_waiters.jobs.wait_many(jobs, timeout_ms, enough)

    async def wait_ended(self, job: int, timeout_ms: int) -> bool:
        """Waits until a job has ended, and returns whether it has."""
        return await self._end_waiters.jobs.wait(job, timeout_ms)

    async def position(self, job: int) -> Position:
        """Returns where a job is in the order of its queue."""

        async def read(tx: ReadTx) -> Position:
            facts = existing("job", job, (await tx.jobs.read([job])).get(job))
            await self._catalog.know(tx, [facts.shape])
            score = (tx.now - facts.rank) / self._catalog.interval_ms
            inherited = inherited_levels(self._catalog, facts)
            return Position(facts.base, facts.adjustment, score, inherited)

        return await self._store.read(read)

    async def namespace_of(self, job: int) -> str:
        """Returns the namespace of a job."""
        bodies = await self._store.read(lambda tx: tx.jobs.specs([job]))
        body = existing("job", job, bodies.get(job))
        return decode_spec(body).namespace or DEFAULT_NAMESPACE


def _newest_first(jobs: Sequence[int]) -> list[int]:
    """Returns each job once; those that depend on others come before them.

    An older one that ends in an earlier transaction would abort them.
    """
    _check_ids(jobs)
    return sorted(set(jobs), reverse=True)


def _check_ids(jobs: Sequence[int]) -> None:
    for job in jobs:
        check_id("job", job)


async def _facts_now(tx: ReadTx, job: int) -> tuple[int, JobFacts | None]:
    """Returns the time and the facts of a job."""
    return tx.now, (await tx.jobs.read([job])).get(job)


class Bulk:
    """Cancels, retries and prioritizes jobs by filter."""

    def __init__(self, store: Store, jobs: Jobs) -> None:
        self._store = store
        self._jobs = jobs

    async def count(self, wanted: JobFilter, cursor: int) -> BulkReply:
        """Counts the jobs of the next page."""
        jobs, following = await self._page(wanted, cursor)
        return BulkReply(matched=len(jobs), applied=0, next=following)

    async def cancel(
        self, wanted: JobFilter, cursor: int, reason: str, actor: str, refuse: Refuse,
        most: int | None = None,
    ) -> BulkReply:  # fmt: skip
        """Cancels the jobs of the next page that the caller may change."""
        jobs, following = await self._page(_default(wanted, OPEN), cursor, most)
        refused = await refuse(jobs)
        ids = [_id(view) for view in jobs if _id(view) not in refused]
        done = await self._jobs.cancel(ids, reason, actor)
        applied = sum(answer.applied for answer in done)
        return _bulk_reply(jobs, applied, refused, following)

    async def retry(
        self, wanted: JobFilter, cursor: int, actor: str, refuse: Refuse, most: int | None = None
    ) -> BulkReply:
        """Retries the jobs of the next page; refuses those aborted by another failed job."""
        jobs, following = await self._page(states_for("retry", wanted), cursor, most)

        async def retry(job: int) -> bool:
            return (await self._jobs.retry(job, actor)).applied

        return await _each(jobs, following, retry, await refuse(jobs))

    async def prioritize(
        self, wanted: JobFilter, cursor: int, adjustment: int, actor: str, refuse: Refuse,
        most: int | None = None,
    ) -> BulkReply:  # fmt: skip
        """Adjusts the jobs of the next page that the caller may change."""
        jobs, following = await self._page(_default(wanted, OPEN), cursor, most)

        async def adjust(job: int) -> bool:
            return await self._jobs.adjust_priority(job, adjustment, actor)

        return await _each(jobs, following, adjust, await refuse(jobs))

    async def _page(
        self, wanted: JobFilter, cursor: int, most: int | None = None
    ) -> tuple[Sequence[JobRecord], int | None]:
        size = PART if most is None else min(PART, most)
        page = await self._store.read(lambda tx: tx.views.jobs(wanted, cursor, size))
        return page.jobs, page.next or None


async def _each(
    jobs: Sequence[JobRecord],
    following: int | None,
    change: Callable[[int], Awaitable[bool]],
    refused: Mapping[int, str],
) -> BulkReply:
    """Changes jobs one by one, except those that are refused."""
    applied, reasons = 0, dict(refused)
    for job in map(_id, jobs):
        if job in reasons:
            continue
        try:
            applied += await change(job)
        except WindlassError as error:
            reasons[job] = str(error)
    return _bulk_reply(jobs, applied, reasons, following)


def _bulk_reply(
    jobs: Sequence[JobRecord], applied: int, refused: Mapping[int, str], following: int | None
) -> BulkReply:
    first = [RefusedJob(id=job, reason=refused[job]) for job in map(_id, jobs) if job in refused][
        :REPORTED
    ]
    return BulkReply(
        matched=len(jobs), applied=applied, refusals=len(refused), refused=first, next=following
    )


def _default(wanted: JobFilter, states: tuple[int, ...]) -> JobFilter:
    """Returns the filter with the states that a command applies to, if it names none."""
    return wanted if wanted.states or wanted.dead else wanted._replace(states=states)


def states_for(action: str, wanted: JobFilter) -> JobFilter:
    """Returns the filter for what a command would change."""
    if action == "retry":
        return _default(wanted, RETRIED)._replace(current=True)
    return _default(wanted, OPEN)


def changeable(action: str, wanted: JobFilter) -> JobFilter | None:
    """Returns the filter for what a command can change; None if it names no such state."""
    found = states_for(action, wanted)
    able = RETRYABLE if action == "retry" else OPEN
    states = tuple(state for state in found.states if state in able)
    if found.dead:
        return found if action == "retry" else None
    return found._replace(states=states) if states else None


def _id(view: JobRecord) -> int:
    return view.facts.id


def as_children(specs: Sequence[JobSpec], parent: JobFacts, namespace: str) -> list[JobSpec]:
    """Returns these jobs as children: in the parent's namespace and workflow."""
    return LongList(
        msgspec.structs.replace(
            spec, parent=parent.id, workflow=parent.workflow, namespace=namespace
        )
        for spec in specs
    )


def key_of(parent: JobFacts, key: str) -> str:
    """Returns the submission's key: unique in the workflow, or else in the job."""
    flow = parent.workflow
    scope = f"job {parent.id}" if flow is None else f"workflow {flow}"
    return f"{APART}{scope}{APART}{key}"


async def submit_children(
    work: Work, holder: Holder, jobs: Sequence[ValidatedJob], key: str
) -> Submitted:
    """Writes the children if the holder still runs the attempt."""
    others = {ref for job in jobs for ref in ids_in(job.spec)}
    facts = await work.tx.jobs.share(sorted({holder.job, *others}))
    if holder.job not in facts:
        raise NotFound("job", holder.job)
    lease = (await work.tx.leases.lock([holder.job])).get(holder.job)
    if lease is None or not is_held(lease, holder):
        raise lease_lost(holder)
    if lease.state != RUNNING:
        raise Conflict("stopping", f"job {holder.job} was told to stop: it cannot add jobs")
    submission = Submission(jobs, None, key_of(facts[holder.job], key))
    (done,) = await submit(work, [submission])
    if isinstance(done, WindlassError):
        raise done
    return done

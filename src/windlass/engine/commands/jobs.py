"""`engine.jobs`: commands about single jobs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from windlass.domain.job.job import DEFAULT_NAMESPACE, JobSpec, decode_spec
from windlass.domain.rows.records import JobFacts
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound
from windlass.engine.attempts.activity import Activity, note_activity
from windlass.engine.commands.submit import SubmitCommand
from windlass.engine.history.delete_jobs import Deleted, delete_jobs
from windlass.engine.jobs import priority, supersede, unblock
from windlass.engine.jobs.cancel import Canceled, cancel
from windlass.engine.jobs.end_waiters import Ended, EndWaiters
from windlass.engine.jobs.inherit_rank import inherited_levels
from windlass.engine.submit.submission import Submitted, rows_of
from windlass.engine.transaction.arguments import check_id, check_text, check_whole
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.group_commit import Committer, Lane, RunStep
from windlass.engine.workflows.cascade_runner import CascadeRunner
from windlass.engine.workflows.child_jobs import as_children, submit_children
from windlass.engine.workflows.retry import retry_one
from windlass.ports.gateway import Holder
from windlass.ports.loop_time import PAGE, LongList, aside, pages
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store


class Position(NamedTuple):
    """A job's score (the highest goes first), and how much of it comes from its dependents."""

    score: float
    inherited: float


class Jobs:
    """Cancels, retries, unblocks and prioritizes jobs, and waits for them.

    Commands return only after the dependents of the affected jobs are updated, too.
    """

    def __init__(
        self,
        *,
        store: Store,
        catalog: Catalog,
        committer: Committer,
        run: RunStep,
        cascades: CascadeRunner,
        end_waiters: EndWaiters,
        submissions: SubmitCommand,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._committer = committer
        self._run = run
        self._cascades = cascades
        self._end_waiters = end_waiters
        self._submissions = submissions
        self._activity = committer.lane(Lane(note_activity))

    async def cancel(
        self, jobs: Sequence[int], reason: str = "Canceled", actor: str | None = None
    ) -> list[Canceled]:
        """Cancels jobs, many of them in several transactions."""
        ordered = await aside(len(jobs), lambda: _newest_first(jobs))
        check_text("reason", reason)
        check_text("actor", actor)
        found: dict[int, Canceled] = {}
        for some in pages(ordered, PAGE):
            done = await self._run(
                partial(cancel, jobs=some, reason=reason, actor=actor), len(some)
            )
            found.update(zip(some, done, strict=True))
        await self._cascades.settled()
        return await aside(len(jobs), lambda: LongList(found[job] for job in jobs))

    async def retry(
        self, job: int, actor: str | None = None, not_before: int | None = None
    ) -> supersede.Superseded:
        """Supersedes an ended job by a new one, which may start at `not_before` (ms)."""
        check_id("job", job)
        check_text("actor", actor)
        # the end of this job may not have reached its dependents yet
        await self._cascades.settled()
        superseded = await self._run(lambda work: retry_one(work, job, actor, not_before))
        await self._cascades.settled()
        return superseded

    async def retry_with(
        self, job: int, args: Any, actor: str | None = None
    ) -> supersede.Superseded:
        """Supersedes an ended job by a new one with other arguments."""
        check_id("job", job)
        check_text("actor", actor)
        await self._cascades.settled()
        bodies = await self._store.read(lambda tx: tx.jobs.specs([job]))
        if job not in bodies:
            raise NotFound("job", job)
        spec = decode_spec(bodies[job])
        supersede.check_references(spec.args, args)
        alone = replace(spec, args=args, after=(), after_any=(), run_if=None, workflow=None)
        (valid,) = self._submissions.validate([replace(alone, key=None, submitted_by=None)])
        changed = supersede.ChangedArgs(valid.spec.args, valid.shape)
        done = await self._run(lambda work: retry_one(work, job, actor, None, changed))
        if not done.applied:
            raise Conflict("superseded", f"job {job} was already retried, as job {done.job}")
        await self._cascades.settled()
        return done

    async def unblock(
        self, job: int, accept: bool = True, reason: str = "Rejected", actor: str | None = None
    ) -> unblock.Unblocked:
        """Releases a job that waits for an operator, or aborts it."""
        check_id("job", job)
        check_text("reason", reason)
        check_text("actor", actor)
        done = await self._run(lambda work: unblock.unblock(work, job, accept, reason, actor))
        await self._cascades.settled()
        return done

    async def adjust_priority(
        self, job: int, adjustment: int, actor: str | None = None
    ) -> priority.Adjusted:
        """Sets a job's priority adjustment."""
        check_id("job", job)
        check_whole("adjustment", adjustment)
        check_text("actor", actor)
        adjusted = await self._run(lambda work: priority.adjust(work, job, adjustment, actor))
        await self._cascades.settled()
        return adjusted

    async def delete(self, jobs: Sequence[int], actor: str | None = None) -> list[Deleted]:
        """Deletes ended jobs that nothing needs any more, with their logs and artifacts.

        Many of them are deleted in several transactions.
        """
        await aside(len(jobs), lambda: _check_ids(jobs))
        check_text("actor", actor)
        found: dict[int, Deleted] = {}
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

    async def note_activity(self, sign: Activity) -> bool:
        """Records a sign of life of a running job; False means `lease_lost`."""
        for number, field in zip(sign, sign._fields, strict=True):
            check_id(field, number)
        return await self._committer.call(self._activity, sign)

    async def wait_some_ended(
        self, jobs: Sequence[int], timeout_ms: int, enough: Callable[[Ended], bool]
    ) -> Ended:
        """Waits until enough of these jobs have ended, and returns those that have."""
        for job in jobs:
            check_id("job", job)
        return await self._end_waiters.wait_jobs(jobs, timeout_ms, enough)

    async def wait_ended(self, job: int, timeout_ms: int) -> bool:
        """Waits until a job has ended, and returns whether it has."""
        return await self._end_waiters.wait_job(job, timeout_ms)

    async def position(self, job: int) -> Position:
        """Returns where a job is in the order of its queue."""

        async def read(tx: ReadTx) -> Position:
            facts = (await tx.jobs.read([job])).get(job)
            if facts is None:
                raise NotFound("job", job)
            await self._catalog.know(tx, [facts.shape])
            score = (tx.now - facts.rank) / self._catalog.interval_ms
            return Position(score, inherited_levels(self._catalog, facts))

        return await self._store.read(read)

    async def namespace_of(self, job: int) -> str:
        """Returns the namespace of a job."""
        body = (await self._store.read(lambda tx: tx.jobs.specs([job]))).get(job)
        if body is None:
            raise NotFound("job", job)
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

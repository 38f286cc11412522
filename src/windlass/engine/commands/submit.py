"""Submits jobs: validates them, writes them in shared transactions, wakes waiting workers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from windlass.domain.config import Config
from windlass.domain.job.dependency_graph import order_by_dependencies
from windlass.domain.job.job import JobSpec, counts_from_now
from windlass.domain.job.validation import ValidatedJob, Validator
from windlass.domain.lifecycle.workflow_state import decode_details
from windlass.domain.rows.records import JobFacts
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.domain.values.names import check_name
from windlass.engine.claim.wakeups import WaitingSyncs
from windlass.engine.fleet.capability import asks_at_once, reject_at_once
from windlass.engine.jobs.unique_keys import Duplicate
from windlass.engine.submit.submission import (
    Submission,
    Submitted,
    WorkflowSpec,
    bytes_of,
    check_workflow,
    rows_of,
    with_digest,
)
from windlass.engine.submit.write_jobs import is_plain, submit
from windlass.engine.sync.fast_path import FastPath, FastResult, answers_of
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.group_commit import Committer, Lane, RunStep
from windlass.ports.loop_time import MANY, SMALL, LongList, aside, gc_paused, give_way_if_long
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store


class SubmitCommand:
    """Submits jobs, all or nothing.

    Plain jobs, which refer to nothing, share transactions; others get a transaction of their own on
    stores with concurrent transactions.
    """

    def __init__(
        self,
        *,
        store: Store,
        config: Config,
        validator: Validator,
        catalog: Catalog,
        waiting_syncs: WaitingSyncs,
        committer: Committer,
        run: RunStep,
    ) -> None:
        self._store = store
        self._config = config
        self._validator = validator
        self._catalog = catalog
        self._waiting_syncs = waiting_syncs
        self._committer = committer
        self._run = run
        most = None if store.inline else 1
        self._plain = committer.lane(Lane(submit, key=lambda s: s.key, size=bytes_of))
        self._graphs = committer.lane(Lane(submit, key=lambda s: s.key, size=bytes_of, most=most))

    def use_fast_path(self, path: FastPath, committed: Callable[[FastResult[Any]], None]) -> None:
        """Tries plain submissions on the fast path first."""
        self._plain.fast = partial(answers_of, path.submit, committed)

    def validate(
        self, jobs: Sequence[JobSpec], now: int | None = None, first: int = 0
    ) -> list[ValidatedJob]:
        """Returns the jobs ready to be written at `now`, or raises `InvalidInput`.

        Without `now`, jobs whose times count from the submission are only checked. `first` is the
        number of the first job, which errors name.
        """
        self._validator.use_timeouts(self._catalog.timeouts)
        try:
            return self._validator.validate_all(jobs, now=now)
        except InvalidInput:
            # Only an error is worth the cost of naming each job.
            check = self._validator.validate
            return [check(job, f"jobs[{n}]", now) for n, job in enumerate(jobs, first)]

    async def validate_in_steps(
        self, jobs: Sequence[JobSpec], now: int | None = None
    ) -> list[ValidatedJob]:
        """Does the same while others have their turn: there may be many jobs, or large ones."""
        if len(jobs) > SMALL:
            return await aside(len(jobs), lambda: LongList(self.validate(jobs, now)))
        checked: list[ValidatedJob] = []
        step = 1 + len(jobs) // 100
        for first in range(0, len(jobs), step):
            checked += self.validate(jobs[first : first + step], now, first)
            await give_way_if_long()
        return checked

    async def submit(
        self,
        jobs: Sequence[JobSpec],
        workflow: WorkflowSpec | None,
        key: str | None,
        reopen: bool,
    ) -> Submitted:
        """Submits jobs; see `Engine.submit`."""
        if not jobs and workflow is None:
            raise InvalidInput("jobs", "at least one job", 0)
        if workflow is not None:
            check_workflow(workflow, self._config.payload_limit)
        if key is not None:
            check_name("key", key)
            if not jobs:
                raise InvalidInput("key", "omitted for an empty submission", key)
        if len(jobs) >= MANY:
            with gc_paused():
                return await self._submit(jobs, workflow, key, reopen)
        return await self._submit(jobs, workflow, key, reopen)

    async def submit_validated(self, submission: Submission) -> Submitted:
        """Submits jobs that may refer to others; if a workflow already has its key, returns that
        one.
        """
        try:
            rows = rows_of(submission.jobs)
            return await self._committer.call(self._graphs, submission, rows)
        except Duplicate as found:
            return await self.answer_duplicate(found, submission)

    async def _submit(
        self, jobs: Sequence[JobSpec], workflow: WorkflowSpec | None, key: str | None, reopen: bool
    ) -> Submitted:
        await give_way_if_long()
        # Most jobs need no clock, and asking a shared store for its time is a round trip.
        now = await self._store.now() if any(map(counts_from_now, jobs)) else None
        checked = await self.validate_in_steps(jobs, now)
        await give_way_if_long()
        if workflow is not None:
            workflow = with_digest(workflow, jobs)
        submission = Submission(checked, workflow, key, reopen)
        at_once = self._config.capability_grace_ms == 0
        if not is_plain(submission):
            done = await self.submit_validated(submission)
            at_once = at_once or asks_at_once(checked)
        else:
            if self._store.inline and not self._plain.pending:
                self._wake_early(checked)
            done = await self._committer.call(self._plain, submission, rows_of(checked))
        if at_once:
            await self._run(partial(reject_at_once, jobs=done.ids))
        return done

    def _wake_early(self, jobs: Sequence[ValidatedJob]) -> None:
        """Lets waiting syncs join the transaction that writes jobs for them.

        This saves a commit between submit and start. The syncs are called after the jobs, so they
        come after them in the same batch, or in a later one.
        """
        shape = self._catalog.ids.get(jobs[0].template.digest)
        if shape in self._catalog.shapes and not self._catalog.paused(shape):
            self._waiting_syncs.wake_early(shape, len(jobs))

    async def answer_duplicate(self, found: Duplicate, submission: Submission) -> Submitted:
        """Returns the workflow that has this key, and the jobs it was submitted with.

        Raises `Conflict` if it was submitted with others.
        """
        jobs, new = submission.jobs, submission.workflow
        # The other commit may still wait for a standby; a lock on the row makes us wait for it,
        # too.
        await self._run(lambda work: work.tx.workflows.lock([found.workflow]))
        first = await self._store.read(lambda tx: _first_jobs(tx, found.workflow))
        known = await self._store.read(lambda tx: _digest(tx, found.workflow))
        asked = None if new is None else new.details.digest
        if len(first) < len(jobs) or (known is not None and asked is not None and known != asked):
            key = "" if new is None else f" {new.key!r}"
            raise Conflict(
                "key_conflict",
                f"workflow.key{key} is used by workflow {found.workflow}, which was submitted with "
                "other jobs or options",
            )
        first = first[: len(jobs)]
        ids = [0] * len(jobs)
        for job, index in zip(first, order_by_dependencies([j.spec for j in jobs]), strict=True):
            ids[index] = job
        return Submitted(tuple(ids), (False,) * len(ids), found.workflow)


async def _digest(tx: ReadTx, workflow: int) -> str | None:
    """Returns the digest of what a workflow was submitted with, if known."""
    about = (await tx.workflows.about([workflow])).get(workflow)
    return None if about is None else decode_details(about.body).digest


async def _first_jobs(tx: ReadTx, workflow: int) -> list[int]:
    """Returns the jobs of a workflow that superseded no other, in the order they were written."""
    found: list[int] = []
    page: list[JobFacts] = []
    while page := await tx.workflows.jobs_of(workflow, page[-1].id if page else 0, 1_000):
        found += [fact.id for fact in page if not fact.supersedes]
    return found

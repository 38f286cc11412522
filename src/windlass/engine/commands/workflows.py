"""The engine's commands about whole workflows."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from windlass.domain.job.dependency_graph import order_by_dependencies
from windlass.domain.job.job import DEFAULT_NAMESPACE, JobSpec, decode_spec
from windlass.domain.job.validation import ValidatedJob
from windlass.domain.lifecycle.workflow_state import Details, WorkflowState
from windlass.domain.rows.records import JobFacts
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound
from windlass.engine.jobs.end_waiters import Endings
from windlass.engine.submit.submission import Duplicate, Submission, Submitted
from windlass.engine.transaction.arguments import check_id, check_text
from windlass.engine.transaction.unit_of_work import Work
from windlass.engine.workflows.child_jobs import as_children, submit_children
from windlass.engine.workflows.retry import Retried, plan_repetition, retry_failed
from windlass.engine.workflows.stop import Stopped, cancel_workflow
from windlass.ports.gateway import Holder
from windlass.ports.store import Store, Tx

T = TypeVar("T")


class WorkflowCommands(ABC):
    """A part of the engine."""

    store: Store
    _endings: Endings

    @abstractmethod
    async def run(self, step: Callable[[Work], Awaitable[T]]) -> T: ...

    @abstractmethod
    async def settled(self) -> None: ...

    @abstractmethod
    def validate_jobs(self, jobs: Sequence[JobSpec]) -> list[ValidatedJob]: ...

    @abstractmethod
    async def _submit_checked(self, submission: Submission) -> Submitted: ...

    async def cancel_workflow(
        self, workflow: int, reason: str = "Canceled", actor: str | None = None
    ) -> Stopped:
        """Cancel a workflow; the answer comes when all its jobs have ended or were told."""
        check_id("workflow", workflow)
        check_text("reason", reason)
        check_text("actor", actor)
        done = await self.run(lambda work: cancel_workflow(work, workflow, reason, actor))
        await self.settled()
        row = (await self.store.read(lambda tx: tx.workflows.lock([workflow]))).get(workflow)
        return done if row is None else done._replace(state=WorkflowState(row.state).name.lower())

    async def retry_workflow(
        self,
        workflow: int,
        failed: bool = True,
        actor: str | None = None,
        not_before: int | None = None,
    ) -> Retried:
        """Try the failed jobs of a workflow again, or all of it as a new workflow."""
        check_id("workflow", workflow)
        check_text("actor", actor)
        if failed:
            await self.settled()  # the failure itself may still be stopping other jobs
            done = await self.run(lambda work: retry_failed(work, workflow, actor, not_before))
            await self.settled()
            return done
        if not_before is not None:
            raise InvalidInput("not_before", "unset for a workflow from scratch", not_before)
        plan = await self.store.read(lambda tx: plan_repetition(tx, workflow, actor))
        jobs = self.validate_jobs(plan.jobs)
        made = await self._submit_checked(Submission(jobs, plan.workflow, origins=plan.origins))
        return Retried(made.workflow, all(made.applied))

    async def submit_children(self, holder: Holder, jobs: Sequence[JobSpec], key: str) -> Submitted:
        """Submit jobs on behalf of one that runs, into its own workflow; fenced by the holder.

        Said again with the same `key` in this workflow, it is answered as before.
        """
        if not jobs:
            raise InvalidInput("jobs", "at least one job", 0)
        check_text("key", key)
        parent = (await self.store.read(lambda tx: tx.jobs.read([holder.job]))).get(holder.job)
        if parent is None:
            raise NotFound("job", holder.job)
        namespace = await self.namespace_of(holder.job)
        checked = self.validate_jobs(as_children(jobs, parent, namespace))
        done = await self.run(lambda work: submit_children(work, holder, checked, key))
        return done._replace(workflow=parent.workflow)

    async def namespace_of(self, job: int) -> str:
        """The namespace a job belongs to."""
        body = (await self.store.read(lambda tx: tx.jobs.specs([job]))).get(job)
        if body is None:
            raise NotFound("job", job)
        return decode_spec(body).namespace or DEFAULT_NAMESPACE

    async def wait_workflow_ended(self, workflow: int, timeout_ms: int) -> bool:
        """Wait until a workflow has ended; whether it has."""
        return await self._endings.wait(-workflow, timeout_ms)

    async def workflow_details(self, workflow: int) -> Details:
        """What a workflow was submitted with."""
        about = (await self.store.read(lambda tx: tx.workflows.about([workflow]))).get(workflow)
        if about is None:
            raise NotFound("workflow", workflow)
        return msgspec.json.decode(about.body, type=Details)

    async def _answer_duplicate(self, found: Duplicate, jobs: Sequence[ValidatedJob]) -> Submitted:
        """The workflow that is there, and the jobs that it was submitted with."""
        first = await self.store.read(lambda tx: _first_jobs(tx, found.workflow))
        if len(first) < len(jobs):
            raise Conflict(
                "key_conflict",
                f"expected the workflow's key to come with the same jobs, workflow "
                f"{found.workflow} has it and {len(first)} jobs",
            )
        first = first[: len(jobs)]
        ids = [0] * len(jobs)
        for job, index in zip(first, order_by_dependencies([j.spec for j in jobs]), strict=True):
            ids[index] = job
        return Submitted(tuple(ids), (False,) * len(ids), found.workflow)


async def _first_jobs(tx: Tx, workflow: int) -> list[int]:
    """The jobs of a workflow that superseded no other, ascending: in the order of writing."""
    found: list[int] = []
    page: list[JobFacts] = []
    while page := await tx.workflows.jobs_of(workflow, page[-1].id if page else 0, 1_000):
        found += [fact.id for fact in page if not fact.supersedes]
    return found

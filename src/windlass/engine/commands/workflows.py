"""`engine.workflows`: commands about whole workflows."""

from dataclasses import dataclass

from msgspec.structs import replace

from windlass.domain.lifecycle.workflow_state import Details, WorkflowState, decode_details
from windlass.domain.values.errors import InvalidInput, existing
from windlass.engine.commands.submit import SubmitCommand
from windlass.engine.jobs.end_waiters import EndWaiters
from windlass.engine.submit.submission import Submission
from windlass.engine.transaction.arguments import check_id, check_text
from windlass.engine.transaction.group_commit import RunStep
from windlass.engine.workflows import (
    CascadeRunner,
    cancel_workflow,
    plan_repetition,
    retry_failed,
)
from windlass.messages.workflows import CanceledWorkflow, RetriedWorkflow
from windlass.store.store import Store


@dataclass(eq=False)
class Workflows:
    """Cancels and retries workflows, and waits for them."""

    _store: Store
    _run: RunStep
    _cascades: CascadeRunner
    _end_waiters: EndWaiters
    _submissions: SubmitCommand

    async def cancel(
        self, workflow: int, reason: str = "Canceled", actor: str | None = None
    ) -> CanceledWorkflow:
        """Cancels a workflow; returns when its jobs have ended or been told to stop."""
        check_id("workflow", workflow)
        check_text("reason", reason)
        check_text("actor", actor)
        done = await self._run(lambda work: cancel_workflow(work, workflow, reason, actor))
        await self._cascades.settled()
        row = (await self._store.read(lambda tx: tx.workflows.read([workflow]))).get(workflow)
        return done if row is None else replace(done, state=WorkflowState(row.state).name.lower())

    async def retry(
        self,
        workflow: int,
        failed: bool = True,
        actor: str | None = None,
        not_before: int | None = None,
    ) -> RetriedWorkflow:
        """Retries the failed jobs of a workflow, or all of it as a new workflow."""
        check_id("workflow", workflow)
        check_text("actor", actor)
        if failed:
            await self._cascades.settled()  # the failure may still be stopping other jobs
            done = await self._run(lambda work: retry_failed(work, workflow, actor, not_before))
            await self._cascades.settled()
            return done
        if not_before is not None:
            raise InvalidInput(
                "not_before", "unset for a workflow that starts from scratch", not_before
            )
        plan = await self._store.read(lambda tx: plan_repetition(tx, workflow, actor))
        jobs = self._submissions.validate(plan.jobs)
        submission = Submission(jobs, plan.workflow, origins=plan.origins)
        made = await self._submissions.submit_validated(submission)
        return RetriedWorkflow(made.known_workflow, all(made.applied), made.at)

    async def wait_ended(self, workflow: int, timeout_ms: int) -> bool:
        """Waits until a workflow has ended, and returns whether it has."""
        return await self._end_waiters.workflows.wait(workflow, timeout_ms)

    async def details(self, workflow: int) -> Details:
        """Returns what a workflow was submitted with."""
        rows = await self._store.read(lambda tx: tx.workflows.about([workflow]))
        about = existing("workflow", workflow, rows.get(workflow))
        return decode_details(about.body)

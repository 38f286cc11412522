"""Makes attempts for the agent core: finds the executor and the secrets of each job."""

from collections.abc import Mapping

import msgspec

from windlass.messages.sync import Assignment, Finished, Released
from windlass.ports.executor import Executor
from windlass.worker.attempt.attempt import Attempt
from windlass.worker.attempt.context import AgentContext
from windlass.worker.attempt.spec import AttemptSpec, isolation_of, read_spec
from windlass.worker.core.ports import AttemptEnded, Report


class AttemptStarter:
    """Implements `Starter`."""

    def __init__(self, context: AgentContext, executors: Mapping[str, Executor]) -> None:
        self._context = context
        self._executors = executors

    def reason_to_decline(self, assignment: Assignment) -> str | None:
        try:
            return self._obstacle(assignment, read_spec(assignment.spec))
        except msgspec.DecodeError:
            return None  # Making the attempt fails, and its report names the error.

    def make(self, assignment: Assignment, ended: AttemptEnded) -> Attempt | Report:
        job, attempt = assignment.job, assignment.attempt
        try:
            spec = read_spec(assignment.spec)
        except msgspec.DecodeError as error:
            return Finished(
                job, attempt, outcome="failed", failure="configuration", message=str(error),
                misfit=True,
            )  # fmt: skip
        if self._obstacle(assignment, spec) is not None:
            return Released(job, attempt)
        return Attempt(self._context, assignment, spec, self._executors[spec.task], ended)

    def _obstacle(self, assignment: Assignment, spec: AttemptSpec) -> str | None:
        """Returns why this worker cannot run a job; None if it can."""
        context, names = self._context, spec.all_secrets
        if spec.task not in self._executors:
            return f"this worker does not run {spec.task} jobs"
        unable = context.isolation.lacks(isolation_of(context.isolation, assignment, spec))
        if unable is not None or not names:
            return unable
        missing = context.secrets.missing(names, spec.namespace)
        return f"this worker lacks the secrets {', '.join(missing)}" if missing else None

"""Makes attempts for the agent core: finds the executor and the secrets of each job."""

from collections.abc import Mapping

import msgspec

from windlass.domain.matching.isolation import Isolation
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
            spec = read_spec(assignment.spec)
        except msgspec.DecodeError:
            return None  # Making the attempt fails, and its report names the error.
        if spec.task not in self._executors:
            return f"this worker does not run {spec.task} jobs"
        unable = self._context.isolation.lacks(self._mode(assignment, spec))
        if unable is not None:
            return unable
        missing = self._context.secrets.missing(spec.all_secrets, spec.namespace)
        return f"this worker lacks the secrets {', '.join(missing)}" if missing else None

    def make(self, assignment: Assignment, ended: AttemptEnded) -> Attempt | Report:
        job, attempt = assignment.job, assignment.attempt
        try:
            spec = read_spec(assignment.spec)
        except msgspec.DecodeError as error:
            return Finished(
                job, attempt, outcome="failed", failure="configuration", message=str(error),
                misfit=True,
            )  # fmt: skip
        executor = self._executors.get(spec.task)
        lacking = spec.all_secrets and self._context.secrets.missing(
            spec.all_secrets, spec.namespace
        )
        unable = self._context.isolation.lacks(self._mode(assignment, spec))
        if executor is None or lacking or unable:
            return Released(job, attempt)
        return Attempt(self._context, assignment, spec, executor, ended)

    def _mode(self, assignment: Assignment, spec: AttemptSpec) -> Isolation:
        return isolation_of(self._context.isolation, assignment, spec)

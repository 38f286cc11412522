"""The attributes of spans, named by OpenTelemetry's semantic conventions.

Nothing here includes arguments, results, messages or secrets of jobs.
"""

from collections.abc import Mapping
from typing import Any, Final

SYSTEM: Final = "windlass"

# The values of `cicd.pipeline.task.run.result` and `cicd.pipeline.result` for outcomes.
RESULTS: Final[Mapping[str, str]] = {
    "completed": "success",
    "failed": "failure",
    "timed_out": "timeout",
    "canceled": "cancellation",
    "released": "skip",
    "suspended": "skip",
    "lost": "error",
}


def of_sending(queue: str, jobs: int) -> dict[str, Any]:
    """Returns the attributes of a submission."""
    return {
        "messaging.system": SYSTEM,
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": queue,
        "messaging.batch.message_count": jobs,
    }


def of_job(job: int, attempt: int, queue: str, task: str, workflow: int | None) -> dict[str, Any]:
    """Returns the attributes of an attempt, or of the wait before it."""
    found: dict[str, Any] = {
        "messaging.system": SYSTEM,
        "messaging.destination.name": queue,
        "messaging.message.id": str(job),
        "cicd.pipeline.task.name": task,
        "cicd.pipeline.task.run.id": f"{job}.{attempt}",
    }
    if workflow is not None:
        found["cicd.pipeline.run.id"] = str(workflow)
    return found


def of_pipeline(workflow: int, name: str, state: str) -> dict[str, Any]:
    """Returns the attributes of a workflow that has ended."""
    return {
        "cicd.pipeline.action.name": "RUN",
        "cicd.pipeline.name": name,
        "cicd.pipeline.run.id": str(workflow),
        "cicd.pipeline.result": RESULTS.get(state, "error"),
    }


def of_processing(outcome: str) -> dict[str, Any]:
    """Returns the attributes of an attempt itself, without those of its job."""
    return {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "cicd.pipeline.task.run.result": RESULTS.get(outcome, "error"),
    }

"""Messages about workflows, version 1."""

from typing import Any, Final

import msgspec


class Workflow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow for display; `counts` is the number of jobs per state.

    `priority` is the default base of its jobs, `run` rises each time it is reopened, `supersedes`
    is the workflow that this one repeats from the start.
    """

    id: int
    name: str
    namespace: str
    state: str
    counts: dict[str, int]
    jobs: int
    priority: int
    key: str | None
    submitted_by: str | None
    created_at: str
    finished_at: str | None
    run: int
    fail_fast: bool
    labels: dict[str, str]
    template: str | None
    parameters: dict[str, Any]
    on_success: list[Any]
    on_failure: list[Any]
    on_end: list[Any]
    supersedes: int | None
    reason: str | None
    outputs: dict[str, Any] = {}  # those known so far; empty in lists


WORKFLOW_LISTS: Final = ("state", "label")  # filters that take several values
WORKFLOW_FILTERS: Final = (*WORKFLOW_LISTS, "name", "namespace", "key", "text")


class WorkflowList(msgspec.Struct, frozen=True):
    """One page, newest first; `next` is the cursor of the following one."""

    workflows: list[Workflow]
    next: str | None = None


class CancelWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str = "Canceled"


class CanceledWorkflow(msgspec.Struct, frozen=True):
    id: int
    state: str
    applied: bool


class RetryWorkflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Retries its failed jobs, or all of it as a new workflow."""

    failed: bool = True


class RetriedWorkflow(msgspec.Struct, frozen=True):
    """The workflow that runs now: the same, or its successor, which got its id at `at` (in ms)."""

    id: int
    applied: bool
    at: int = 0

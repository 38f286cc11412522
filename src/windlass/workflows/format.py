"""The fields of a workflow file; the JSON schema is made from these types.

A value that is one `${{ … }}` takes the type of what it stands for, so every field may be
given by a parameter.
"""

from typing import Any, Final, Literal

import msgspec

from windlass.wire.jobs import Duration, Limit, RateLimit

Scalar = str | int | float | bool  # counts as its text, as it was written


class ParameterFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value that is given when the workflow is submitted; one without default must be."""

    type: Literal["string", "integer", "number", "boolean", "list"] | None = None
    default: Scalar | list[Scalar] | None = None
    choices: list[Scalar] = []
    description: str | None = None


class InputFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An artifact that is put into the working directory before the program starts.

    `job` is the name of a job that this one waits for, or the id of any.
    """

    artifact: str | dict[str, str]
    job: int | str | None = None
    path: str | None = None


class JobFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One job, or with `matrix` or `count` many: `run`, or `task` with `args`, or `workflow`."""

    run: list[Scalar] | None = None
    task: str | None = None
    args: Any = None
    workflow: str | dict[str, Any] | None = None
    parameters: dict[str, Any] = {}
    after: int | str | list[int | str] = []
    after_any: int | str | list[int | str] = []
    allow_failure: bool = False
    unblock: Literal["auto", "manual"] = "auto"
    requires: str | list[str] = []
    resources: dict[str, int | str] = {}
    target: str | None = None
    secrets: list[str] = []
    queue: str = "default"
    priority: int | str | None = None
    timeout: Duration | None = None
    idle_timeout: Duration | None = None
    duration: Duration | None = None
    retries: int | None = None
    retry_on: list[str] = []
    not_before: str | None = None
    start_before: str | None = None
    finish_before: str | None = None
    capability_grace: Duration | None = None
    prefers: str | list[str] = []
    apart: str | None = None
    rate: RateLimit | None = None
    preemptible: bool = False
    concurrency: Limit | None = None
    labels: dict[str, Scalar] = {}
    env: dict[str, Scalar] = {}
    inputs: list[InputFile] = []
    artifacts: list[str] = []
    matrix: dict[str, list[Scalar | dict[str, Scalar]]] | None = None
    count: int | None = None


class WorkflowFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workflow: jobs that finish as one."""

    name: str
    jobs: dict[str, JobFile]
    namespace: str | None = None
    priority: int | str | None = None
    key: str | None = None
    fail_fast: bool = False
    labels: dict[str, Scalar] = {}
    parameters: dict[str, ParameterFile] = {}
    on_success: list[dict[str, Any]] = []
    on_failure: list[dict[str, Any]] = []
    on_end: list[dict[str, Any]] = []


# What stands for jobs of another file says when and how often; the rest is in that file.
OF_SUBWORKFLOWS: Final = frozenset(
    {"workflow", "parameters", "after", "after_any", "allow_failure", "priority", "matrix", "count"}
)
# What the `shell` task of `run` takes beside the words of its command.
OF_COMMANDS: Final = ("env", "inputs", "artifacts")

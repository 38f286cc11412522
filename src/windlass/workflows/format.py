"""The fields of a workflow file, and the JSON schema made from these types.

A value that is a single `${{ … }}` takes the type of its replacement, so a parameter can set any
field. `published()` is the schema of a file as it is written, where any value may be a `${{ … }}`,
for editors and other tools.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from windlass.domain.job.forms import Duration, Scalar
from windlass.domain.job.job import ELSEWHERE, OPTIONS, JobOption


class ParameterFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value given when the workflow is submitted; required if it has no default."""

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


class _JobFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One job, or many with `matrix` or `count`: `run`, or `task` with `args`, or `workflow`.

    `run` is a line for the shell, or a list: a program and its arguments.
    """

    run: str | list[Scalar] | None = None
    condition: str | bool | None = msgspec.field(default=None, name="if")
    workflow: str | dict[str, Any] | None = None
    parameters: dict[str, Any] = {}
    env: dict[str, Scalar] = {}
    inputs: list[InputFile] = []
    artifacts: list[str] = []
    outputs: list[str] = []
    matrix: dict[str, list[Scalar | dict[str, Scalar]]] | None = None
    count: int | None = None


def _field(option: JobOption) -> tuple[str, Any, Any]:
    """Returns a job option as a field of files."""
    kind = option.form.in_file or option.type
    if option.required:
        kind = kind | None
    return option.name, Annotated[kind, msgspec.Meta(description=option.help)], option.default


if TYPE_CHECKING:
    JobFile = _JobFile
else:
    # Every job option that files have, and the fields that only files have.
    JobFile = msgspec.defstruct(
        "JobFile",
        [_field(option) for option in OPTIONS.values() if option.in_files],
        bases=(_JobFile,),
        namespace={"__doc__": _JobFile.__doc__},
        frozen=True,
        kw_only=True,
    )


class WorkflowFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workflow: jobs that finish as one. `timeout` is for jobs without their own."""

    name: str
    jobs: dict[str, JobFile]
    namespace: str | None = None
    priority: int | str | None = None
    key: str | None = None
    key_for: Duration | None = None
    fail_fast: bool = False
    labels: dict[str, Scalar] = {}
    parameters: dict[str, ParameterFile] = {}
    env: dict[str, Scalar] = {}
    timeout: Duration | None = None
    outputs: dict[str, Scalar] = {}
    on_success: list[dict[str, Any]] = []
    on_failure: list[dict[str, Any]] = []
    on_end: list[dict[str, Any]] = []


# A nested workflow's entry says when and how often it runs; the rest is in its file.
OF_SUBWORKFLOWS: Final = frozenset(
    {"workflow", "parameters", "after", "after_any", "allow_failure", "priority", "matrix",
     "count", "if"}
)  # fmt: skip
# Other systems' names for our keys; names of job options elsewhere are in `ELSEWHERE`.
OTHER_KEYS: Final = {
    **ELSEWHERE,
    "allowed_to_fail": "allow_failure", "cmd": "run", "command": "run", "condition": "if",
    "continue-on-error": "allow_failure", "continue_on_error": "allow_failure",
    "dependencies": "after", "dependsOn": "after", "depends_on": "after", "environment": "env",
    "inputs": "parameters", "needs": "after", "params": "parameters", "runs-on": "requires",
    "runs_on": "requires", "script": "run", "strategy": "matrix", "tasks": "jobs",
    "timeout-minutes": "timeout", "timeout_minutes": "timeout", "variables": "env", "vars": "env",
    "when": "if", "with": "parameters",
}  # fmt: skip
# Where outputs of other jobs may be used.
WITH_OUTPUTS: Final = frozenset({"run", "env", "args"})
# What the `shell` task of `run` takes besides the words of its command.
OF_COMMANDS: Final = ("env", "inputs", "artifacts")


Schema = Mapping[str, Any]

ROOT: Final = "WorkflowFile"
JOB: Final = "JobFile"
_REF: Final = "#/$defs/"
_EXPRESSION: Final = {"type": "string", "pattern": r"\$\{\{"}
_NAMES: Final = {ROOT: "workflow", JOB: "job", "ParameterFile": "parameter", "InputFile": "input"}


def _components() -> dict[str, Any]:
    _, found = msgspec.json.schema_components([WorkflowFile], ref_template=_REF + "{name}")
    for name, part in found.items():
        part["title"] = _NAMES.get(name, name.lower())
    return found


def _relaxed(schema: Any) -> Any:
    """Returns the schema, extended to accept `${{ … }}` for values other than text."""
    if not isinstance(schema, dict):
        return schema
    options = schema.get("anyOf")
    if options is not None:
        inner = [_relaxed_inside(option) for option in options]
        if not any(option.get("type") == "string" for option in options):
            inner.append({"$ref": f"{_REF}expression"})
        return {**schema, "anyOf": inner}
    kind = schema.get("type")
    if kind in ("array", "integer", "number", "boolean") or "enum" in schema:
        about = {name: schema[name] for name in ("description", "default") if name in schema}
        bare = {name: part for name, part in schema.items() if name not in about}
        return {**about, "anyOf": [_relaxed_inside(bare), {"$ref": f"{_REF}expression"}]}
    return _relaxed_inside(schema)


def _relaxed_inside(schema: dict[str, Any]) -> dict[str, Any]:
    """Does the same for the contents of a list or mapping."""
    changed = dict(schema)
    for name in ("items", "additionalProperties"):
        if name in changed:
            changed[name] = _relaxed(changed[name])
    if "properties" in changed:
        changed["properties"] = {n: _relaxed(part) for n, part in changed["properties"].items()}
    return changed


def _whole(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Returns the schema with the parts that its references name; none of them contains itself."""
    if isinstance(schema, list):
        return [_whole(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _whole(parts[schema["$ref"].removeprefix(_REF)], parts)
    return {name: _whole(one, parts) for name, one in schema.items()}


_STRICT: Final = _components()
_RELAXED: Final[Mapping[str, Any]] = {
    **{name: part if name == "ParameterFile" else _relaxed(part) for name, part in _STRICT.items()},
    "expression": {
        "title": "expression",
        "description": "Replaced by a parameter, a value of the matrix or the index of the job.",
        **_EXPRESSION,
    },
}


# A file as it is written, and the fields of a workflow and of a job after substitution.
WRITTEN: Final[Schema] = _whole(_RELAXED[ROOT], _RELAXED)
WORKFLOW_FIELDS: Final[Mapping[str, Schema]] = _whole(_STRICT[ROOT], _STRICT)["properties"]
JOB_FIELDS: Final[Mapping[str, Schema]] = _whole(_STRICT[JOB], _STRICT)["properties"]


def published() -> dict[str, Any]:
    """Returns the contents of docs/reference/workflow.schema.json."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Windlass workflow",
        "$ref": f"{_REF}{ROOT}",
        "$defs": dict(_RELAXED),
    }

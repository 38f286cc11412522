"""The JSON schema of workflow files, as editors and other tools take it.

`published()` is the schema of a file as it is written, where any value may be a `${{ … }}`;
`DEFINITIONS` holds its parts, and those for values that have been substituted.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from windlass.workflows.format import WorkflowFile

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
    """Does the same for what a list or mapping holds."""
    changed = dict(schema)
    for name in ("items", "additionalProperties"):
        if name in changed:
            changed[name] = _relaxed(changed[name])
    if "properties" in changed:
        changed["properties"] = {n: _relaxed(part) for n, part in changed["properties"].items()}
    return changed


STRICT: Final[Mapping[str, Any]] = _components()
RELAXED: Final[Mapping[str, Any]] = {
    **{name: part if name == "ParameterFile" else _relaxed(part) for name, part in STRICT.items()},
    "expression": {
        "title": "expression",
        "description": "Replaced by a parameter, a value of the matrix or the index of the job.",
        **_EXPRESSION,
    },
}


def published() -> dict[str, Any]:
    """Returns what docs/reference/workflow.schema.json contains."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Windlass workflow",
        "$ref": f"{_REF}{ROOT}",
        "$defs": dict(RELAXED),
    }


def resolve(schema: Schema, definitions: Mapping[str, Any]) -> Schema:
    """Returns the part that a reference points to; any other schema as it is."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: Schema = definitions[reference.removeprefix(_REF)]
    return found

"""Describes the arguments of a function as a JSON schema, and the answers to `windlass.ask`.

It is for people who fill in a form. The codecs decide what is accepted; an annotation that a schema
cannot express appears as any JSON, with its name as the title.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, time
from pathlib import Path, PurePath
from typing import Any, Final

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.json_schema import KNOWN
from windlass.tasks.values.codec import Misfit
from windlass.tasks.values.compile import UnsupportedCodec, codec_for, name_of, resolved

_REFERENCE: Final = "#/$defs/{name}"
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
_MANY: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def is_positional(signature: inspect.Signature) -> bool:
    """Returns whether some arguments can only be given by position."""
    return any(one.kind in _POSITIONAL for one in signature.parameters.values())


def arguments_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the schema of an object with the arguments by name."""
    signature = inspect.signature(function)
    space = getattr(inspect.unwrap(function), "__globals__", {})
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            schema["additionalProperties"] = True
        if parameter.kind in _MANY:
            continue
        schema["properties"][name] = _parameter(parameter, space, definitions)
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    schema.setdefault("additionalProperties", False)
    if required:
        schema["required"] = required
    if definitions:
        schema["$defs"] = definitions
    return schema


def _parameter(
    parameter: inspect.Parameter, space: Mapping[str, Any], definitions: dict[str, Any]
) -> dict[str, Any]:
    if parameter.annotation is inspect.Parameter.empty:
        annotation, schema = Any, {}
    else:
        annotation = resolved(parameter.annotation, space, {})
        schema = schema_of(annotation, definitions)
    if parameter.default is inspect.Parameter.empty:
        return schema
    try:
        default = codec_for(annotation).encode(parameter.default)
        msgspec.json.encode(default)
    except Exception:  # A default that cannot be encoded is not shown.
        return schema
    # Old readers of schemas ignore other keywords beside a reference.
    return {"allOf": [schema], "default": default} if "$ref" in schema else {
        **schema, "default": default,
    }  # fmt: skip


def schema_of(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of an annotation; adds what it refers to as `#/$defs/…`."""
    if annotation is Path:
        return {"type": "object", "title": "Path", "description": "an uploaded file"}
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return {"type": "string", "title": annotation.__name__}
    pydantic = sys.modules.get("pydantic")
    is_class = isinstance(annotation, type)
    if pydantic is not None and is_class and issubclass(annotation, pydantic.BaseModel):
        return _of_model(annotation, definitions)
    if annotation in (datetime, time):  # msgspec reports their format only with a zone.
        return {"type": "string", "format": "time" if annotation is time else "date-time"}

    def of_other(kind: Any) -> dict[str, Any]:
        if pydantic is None or not issubclass(kind, pydantic.BaseModel):
            raise NotImplementedError
        return _of_model(kind, definitions)

    try:
        (schema,), found = msgspec.json.schema_components(
            [annotation], schema_hook=of_other, ref_template=_REFERENCE
        )
    except Exception:  # Types that msgspec does not know raise errors of several kinds.
        return {"title": name_of(annotation)}
    definitions.update(found)
    return dict(schema)


def _of_model(model: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    try:
        schema = model.model_json_schema()
    except Exception:  # A type of its own may not have a schema.
        return {"title": name_of(model)}
    definitions.update(schema.pop("$defs", {}))
    return dict(schema)


def answer_schema(annotation: Any) -> dict[str, Any]:
    """Returns the JSON Schema for answers of a type; refuses unsupported types.

    What the server cannot check is left out: the job checks the answer too.
    """
    if isinstance(codec_for(annotation), UnsupportedCodec):
        expected = (
            "a type such as bool, int, date, an enum, a dataclass or a model, or a JSON Schema"
        )
        raise InvalidInput("schema", expected, name_of(annotation))
    definitions: dict[str, Any] = {}
    schema: dict[str, Any] = _checkable(schema_of(annotation, definitions))
    if definitions:
        schema["$defs"] = {name: _checkable(one) for name, one in definitions.items()}
    return schema


def read_answer(annotation: Any, value: Any) -> Any:
    """Returns an answer as annotated; raises `InvalidInput`."""
    try:
        return codec_for(annotation).decode(value)
    except Misfit as misfit:
        raise InvalidInput(f"answer{misfit.where}", misfit.expected, misfit.got) from None


def _checkable(schema: Any) -> Any:
    """Returns a schema without the keywords that servers do not know."""
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name in KNOWN}
    for name in ("properties", "$defs"):
        if isinstance(kept.get(name), Mapping):
            kept[name] = {key: _checkable(part) for key, part in kept[name].items()}
    for name in ("anyOf", "prefixItems"):
        if name in kept:
            kept[name] = [_checkable(part) for part in kept[name]]
    for name in ("items", "additionalProperties"):
        if name in kept:
            kept[name] = _checkable(kept[name])
    return kept

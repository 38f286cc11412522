"""The answers to `windlass.ask`: what people are told to answer, and how answers become values."""

from collections.abc import Mapping
from typing import Any

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.json_schema import KNOWN
from windlass.tasks.values.codec import Misfit
from windlass.tasks.values.compile import UnsupportedCodec, codec_for, name_of
from windlass.tasks.values.schema import schema_of


def answer_schema(annotation: Any) -> dict[str, Any]:
    """Returns the JSON Schema of answers of a type; refuses types whose values cannot travel.

    What the server cannot check of it is left out: the job looks at the answer too.
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
    """Returns a schema without the words that servers do not know."""
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

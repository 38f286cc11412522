"""Converts settings to their types, with messages that name the key and suggest spellings."""

import re
import types
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec

from windlass.domain.values.names import did_you_mean
from windlass_fuzz.errors import InvalidSetting

T = TypeVar("T")

_AT: Final = re.compile(r"(.*?) - at (?:`key` in )?`\$(.*)`\Z", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`\Z", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`\Z", re.DOTALL)
_CHOICE: Final = re.compile(r"Invalid enum value '(.*)'\Z", re.DOTALL)
_STEP: Final = re.compile(r"\.(\w+)|\[[^\]]*\]")


def convert_settings(given: object, kind: type[T], where: str) -> T:
    """Converts the values of a file to a type; `where` names the file or its section in errors."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InvalidSetting(where, f"{where}: {_explain(str(error), kind)}", given) from None


def _explain(text: str, kind: type) -> str:
    """Returns msgspec's complaint in our words."""
    found = _AT.match(text)
    problem, path = (found[1], found[2]) if found else (text, "")
    name = path.lstrip(".").replace("[...]", "")  # msgspec does not say which item it is
    section = f" in {name}" if name else ""
    if unknown := _UNKNOWN.match(problem):
        known = [field.name for field in _fields(_type_at(kind, path))]
        return f"unknown key {unknown[1]}{section}{did_you_mean(unknown[1], known)}"
    if missing := _MISSING.match(problem):
        return f"key {missing[1]} is missing{section}"
    if choice := _CHOICE.match(problem):
        known = _choices(_type_at(kind, path))
        listed = f" (known: {', '.join(known)})" if known else ""
        return f"unknown value {choice[1]}{section}{listed}{did_you_mean(choice[1], known)}"
    prefix = f"{name}: " if name else ""
    return f"{prefix}{problem[:1].lower()}{problem[1:]}"


def _type_at(kind: Any, path: str) -> Any:
    """Follows a path such as `.roles[...]` from a type to the type of that setting."""
    for step in _STEP.finditer(path):
        if step[1] is None:
            items = [part for part in get_args(kind) if part is not Ellipsis]
            kind = items[-1] if items else None
        else:
            kind = next((field.type for field in _fields(kind) if field.name == step[1]), None)
        structs = [part for part in get_args(kind) if _is_struct(part)]
        if isinstance(kind, types.UnionType) and structs:
            kind = structs[0]
    return kind


def _fields(kind: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind) if _is_struct(kind) else ()


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _choices(kind: Any) -> list[str]:
    """Returns the values of a literal type, or of the keys of a mapping."""
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    if isinstance(kind, types.GenericAlias) or get_origin(kind):
        return [choice for part in get_args(kind) for choice in _choices(part)]
    return []

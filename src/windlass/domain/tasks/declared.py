"""Reads the arguments that a task declares; each error names its field."""

import re
from pathlib import PurePosixPath
from typing import Final, TypeVar

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms

Args = TypeVar("Args")

TEXT_LIMIT: Final = 4_096
LIST_LIMIT: Final = 1_000

_AT: Final = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_TYPES: Final = re.compile(r"Expected `?(?P<expected>.+?)`?, got `?(?P<got>.+?)`?", re.DOTALL)


def read_declared(kind: type[Args], args: object, field: str) -> Args:
    """Converts `args` to the type that a task declares; raises `InvalidInput` below `field`."""
    try:
        return msgspec.convert(args, kind)
    except msgspec.ValidationError as error:
        raise _misfit(kind, str(error), field) from None
    except RecursionError:
        raise InvalidInput(field, "nested less deeply", "a very deep value") from None


def _misfit(kind: type, message: str, field: str) -> InvalidInput:
    at = _AT.fullmatch(message)
    what, path = (at["what"], at["path"] or "") if at else (message, "")
    where = field + path
    if unknown := _UNKNOWN.fullmatch(what):
        fields = ", ".join(getattr(kind, "__struct_fields__", ()))
        expected = f"left out: the task takes {fields}" if not path else "left out"
        return InvalidInput(f"{where}.{unknown['name']}", expected, "an unknown field")
    if missing := _MISSING.fullmatch(what):
        return InvalidInput(f"{where}.{missing['name']}", "given", "nothing")
    if types := _TYPES.fullmatch(what):
        return InvalidInput(where, types["expected"], types["got"])
    return InvalidInput(where, "as the task declares it", what)


def check_text(value: str, field: str, limit: int = TEXT_LIMIT) -> None:
    """Raises `InvalidInput` for text that cannot be an argument of a program."""
    if "\0" in value:
        raise InvalidInput(field, "text without NUL characters", "a NUL character")
    if len(value) > limit:
        raise InvalidInput(field, f"at most {limit} characters", f"{len(value)} characters")


def check_texts(values: list[str], field: str) -> None:
    """Checks each text of a list."""
    if len(values) > LIST_LIMIT:
        raise InvalidInput(field, f"at most {LIST_LIMIT} items", len(values))
    for number, value in enumerate(values):
        check_text(value, f"{field}[{number}]")


def check_scratch_path(value: str, field: str) -> None:
    """Raises `InvalidInput` unless this is a path below the job's own folder."""
    check_text(value, field)
    path = PurePosixPath(value)
    if (
        not value
        or value.startswith("-")
        or path.is_absolute()
        or ".." in path.parts
        or not path.name
        or not value.isprintable()
        or "\\" in value
    ):
        raise InvalidInput(field, "a relative path below the job's own folder", value)


def read_duration(value: float | str | None, field: str) -> int | None:
    """Returns a duration of media in milliseconds, greater than 0."""
    if value is None:
        return None
    duration_ms = parse_duration_ms(value, field)
    if duration_ms <= 0:
        raise InvalidInput(field, "longer than 0", value)
    return duration_ms

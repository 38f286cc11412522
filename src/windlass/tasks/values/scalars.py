"""Codecs of single values: numbers, text, times, ids and bytes."""

import base64
import binascii
import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final
from uuid import UUID

import msgspec

from windlass.domain.tasks.references import FILE
from windlass.domain.values.errors import InvalidInput, shorten
from windlass.domain.values.quantities import parse_duration_ms
from windlass.tasks.local_files import LocalFile
from windlass.tasks.values.codec import Codec, Misfit, described

MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**64 - 1
TEXT: Final = frozenset({str})


class NoneCodec(Codec):
    """`None`."""

    name = "None"
    kinds = frozenset({type(None)})

    def encode(self, value: Any) -> Any:
        return value if value is None else self.refuse(value)

    def decode(self, json: Any) -> Any:
        if json is not None:
            raise self.reject(json)


class BoolCodec(Codec):
    """`bool`."""

    name = "bool"
    kinds = frozenset({bool})

    def encode(self, value: Any) -> Any:
        return value if value is True or value is False else self.refuse(value)

    def decode(self, json: Any) -> Any:
        if json is True or json is False:
            return json
        raise self.reject(json)


class IntCodec(Codec):
    """`int`; a bool stays one, since it is an int."""

    name = "int"
    kinds = frozenset({int, bool})

    def encode(self, value: Any) -> Any:
        kind = type(value)
        if kind is int:
            if MIN_INT <= value <= MAX_INT:
                return value
            raise too_large(value)
        return value if kind is bool else self.refuse(value)

    def decode(self, json: Any) -> Any:
        if type(json) is int or type(json) is bool:
            return json
        raise self.reject(json)


def too_large(value: int) -> Misfit:
    """Returns the error for an int that JSON readers may not read exactly."""
    return Misfit("an int of at most 64 bits", shorten(value), "send it as text, or as a Decimal")


class FloatCodec(Codec):
    """`float`; an int that a float can hold becomes one, as type checkers allow."""

    name = "float"
    kinds = frozenset({float})

    def encode(self, value: Any) -> Any:
        if type(value) is int:
            return self._from_int(value)
        if type(value) is not float:
            return self.refuse(value)
        if not math.isfinite(value):
            raise Misfit("a finite number", repr(value), "send None instead")
        return value

    def decode(self, json: Any) -> Any:
        if type(json) is float:
            return json
        if type(json) is int:
            return self._from_int(json)
        raise self.reject(json)

    def _from_int(self, value: int) -> float:
        try:
            exact = float(value)
        except OverflowError:
            exact = math.inf
        if exact != value:
            raise Misfit("a number that a float can hold", shorten(value))
        return exact


class StrCodec(Codec):
    """`str`."""

    name = "str"
    kinds = TEXT

    def encode(self, value: Any) -> Any:
        return checked_text(value) if type(value) is str else self.refuse(value)

    def decode(self, json: Any) -> Any:
        if type(json) is str:
            return json
        raise self.reject(json)


def checked_text(text: str) -> str:
    """Returns the text; refuses lone surrogates, which cannot be encoded as UTF-8."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            hint = "decode it with errors='replace', or send bytes"
            shown = text.encode("ascii", "backslashreplace").decode()
            raise Misfit("text without lone surrogates", shorten(shown), hint) from None
    return text


class TextCodec(Codec):
    """A type whose values are encoded as text."""

    kinds = TEXT

    def __init__(self, kind: type, write: Callable[[Any], str], read: Callable[[str], Any]) -> None:
        self.name = kind.__name__
        self._kind = kind
        self._write = write
        self._read = read

    def encode(self, value: Any) -> Any:
        return self._write(value) if type(value) is self._kind else self.refuse(value)

    def decode(self, json: Any) -> Any:
        if type(json) is not str:
            raise self.reject(json)
        try:
            return self._read(json)
        except (ValueError, ArithmeticError, LookupError, OSError):
            raise self.reject(json) from None


class DurationCodec(TextCodec):
    """`timedelta`: ISO 8601; as input also seconds and text such as 15m."""

    def __init__(self) -> None:
        super().__init__(timedelta, msgspec.to_builtins, _read_duration)

    def decode(self, json: Any) -> Any:
        if type(json) in (int, float):
            try:
                return timedelta(seconds=json)
            except (OverflowError, ValueError):
                raise self.reject(json) from None
        return super().decode(json)


def _read_duration(text: str) -> timedelta:
    try:
        return msgspec.convert(text, timedelta)
    except msgspec.ValidationError:
        pass
    try:
        return timedelta(milliseconds=parse_duration_ms(text, "duration"))
    except InvalidInput as error:
        raise ValueError(error.message) from None


def _write_moment(value: datetime) -> str:
    """Returns the time with its offset, and with the name of its zone if it has one."""
    return value.isoformat() + _zone_name(value, value.tzinfo)


def _write_time(value: time) -> str:
    zone = value.tzinfo
    if zone is not None and type(zone) is not timezone:
        raise Misfit("a time with a fixed offset, or none", described(value))
    return value.isoformat()


def _zone_name(value: Any, zone: tzinfo | None) -> str:
    if zone is None or type(zone) is timezone:
        return ""
    from zoneinfo import ZoneInfo  # few programs need this import

    if type(zone) is ZoneInfo and zone.key:
        return f"[{zone.key}]"
    hint = "use timezones of datetime.timezone or zoneinfo"
    raise Misfit("a datetime with a supported timezone", described(value), hint)


def _read_moment(text: str) -> datetime:
    if not text.endswith("]"):
        return datetime.fromisoformat(text)
    from zoneinfo import ZoneInfo

    written, _, name = text[:-1].partition("[")
    fixed = datetime.fromisoformat(written)
    local = fixed.replace(tzinfo=ZoneInfo(name))
    for fold in (0, 1):
        moment = local.replace(fold=fold)
        if moment.utcoffset() == fixed.utcoffset():
            return moment
    raise ValueError("the zone has another offset at that time")


def _write_decimal(value: Decimal) -> str:
    if value.is_nan():
        raise Misfit("a number", described(value), "send None instead")
    return str(value)


def _read_decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None


def _write_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _read_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


NOTHING: Final = NoneCodec()

SCALARS: Final[dict[Any, Codec]] = {
    None: NOTHING,
    type(None): NOTHING,
    bool: BoolCodec(),
    int: IntCodec(),
    float: FloatCodec(),
    str: StrCodec(),
    datetime: TextCodec(datetime, _write_moment, _read_moment),
    date: TextCodec(date, date.isoformat, date.fromisoformat),
    time: TextCodec(time, _write_time, time.fromisoformat),
    timedelta: DurationCodec(),
    UUID: TextCodec(UUID, str, UUID),
    Decimal: TextCodec(Decimal, _write_decimal, _read_decimal),
    bytes: TextCodec(bytes, _write_bytes, _read_bytes),
    bytearray: TextCodec(bytearray, _write_bytes, lambda text: bytearray(_read_bytes(text))),
    PurePath: TextCodec(PurePosixPath, str, PurePosixPath),
    PurePosixPath: TextCodec(PurePosixPath, str, PurePosixPath),
}


class PathCodec(Codec):
    """A file: encoded as a `LocalFile`, decoded to the path where the worker placed it."""

    name = "Path"
    kinds = frozenset({str})

    def encode(self, value: Any) -> Any:
        reference = getattr(type(value), "__windlass_file__", None)
        if reference is not None:
            return {FILE: reference(value)}
        if not isinstance(value, Path):
            return self.refuse(value)
        if not value.is_file():
            what = "a directory" if value.is_dir() else "which does not exist"
            hint = "it is sent with the job; to name a file on the worker, send its path as str"
            raise Misfit("a file on this machine", f"{value}, {what}", hint)
        return LocalFile(value)

    def decode(self, json: Any) -> Any:
        if type(json) is not str:
            raise self.reject(json)
        return Path(json)


def may_hold_files(codec: Codec) -> bool:
    """Returns whether a value of this annotation can contain a `Path`."""
    seen: set[int] = set()
    waiting = [codec]
    while waiting:
        found = waiting.pop()
        if isinstance(found, PathCodec):
            return True
        if id(found) not in seen:  # a class may contain itself
            seen.add(id(found))
            waiting.extend(found.parts())
    return False

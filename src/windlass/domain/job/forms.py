"""How the values of job options are written: in JSON and Python, and as the text of a flag.

Every form has one canonical value, however it was written: durations are seconds, times are RFC
3339 in UTC or durations from the submission, lists are tuples.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from windlass.domain.tasks.python import importable_name
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import (
    format_duration,
    format_moment,
    parse_duration_ms,
    parse_moment,
    parse_size,
)

Duration = float | str  # seconds, or text such as "15m"
Scalar = str | int | float | bool  # a value in a workflow file that is read as text

NEVER: Final = "never"
NONE: Final = "none"
FOREVER: Final = "forever"
REPEATABLE: Final = "Repeatable."
MAX_COUNT: Final = 2**31 - 1  # processes or open files
MAX_MS: Final = 366 * 86_400_000 * 100  # a century: anything longer is a mistake
_DATE: Final = re.compile(r"\d{4}-")
_MOMENT_EXPECTED: Final = (
    "a time such as 2030-01-02T03:04:05Z, with its zone, or a duration from now such as 15m"
)


class Concurrency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most `max` jobs with this key run at the same time, in one namespace."""

    key: str
    max: int = 1


class RateLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most `max` jobs with this key start within any `per`, in one namespace."""

    key: str
    per: Duration
    max: int = 1


class JobLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a job may use; sizes are bytes or text such as "4GiB". A missing one means no limit."""

    memory: int | str | None = None
    cpu_time: Duration | None = None
    processes: int | None = None
    open_files: int | None = None
    disk: int | str | None = None  # in its scratch directory


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """One way to write a value.

    `canonical` turns a value from JSON or Python into its canonical form, `read` does so for the
    texts of a flag, if they are written in another way; both name the option in errors. A canonical
    value is returned unchanged. `varies` says whether the same value can be written in several
    ways, `word` which word may replace a duration.
    """

    name: str
    canonical: Callable[[Any, str], Any]
    read: Callable[[Sequence[str], str], Any] | None = None
    word: str = ""
    varies: bool = False
    repeats: bool = False  # the flag may be given several times
    in_file: Any = None  # its type in workflow files, if different
    note: str = ""  # how it is written as a flag

    def of_texts(self, texts: Sequence[str], field: str) -> Any:
        """Returns the canonical value that the texts of a flag mean."""
        if self.read is not None:
            return self.read(texts, field)
        return self.canonical(tuple(texts) if self.repeats else texts[0], field)


def seconds(value: object, field: str) -> float:
    """Returns a duration in seconds."""
    return parse_duration_ms(value, field) / 1000


def _kept(value: Any, canonical: Any) -> Any:
    """Returns a value that is already canonical."""
    return value if type(value) is type(canonical) and value == canonical else canonical


def _duration(value: object, field: str) -> Any:
    length = seconds(value, field)
    if not length:
        raise InvalidInput(field, "a duration longer than 0", value)
    return _kept(value, length)


def _or_word(word: str, form: Callable[[object, str], Any], value: object, field: str) -> Any:
    """Returns a duration, or the word that may replace it."""
    if isinstance(value, str) and value.strip().lower() == word:
        return _kept(value, word)
    try:
        return form(value, field)
    except InvalidInput as error:
        raise InvalidInput(field, f"{error.expected}, or {word}", value) from None


def milliseconds(duration: float | str | None) -> int | None:
    """Returns a canonical duration in milliseconds."""
    return None if duration is None else round(float(duration) * 1000)


def is_relative(moment: str) -> bool:
    """Returns whether a canonical time counts from the submission: 15m, not 2030-01-02T…"""
    return not _DATE.match(moment)


def moment_ms(moment: str | None) -> int | None:
    """Returns a canonical time in ms since 1970; None if it counts from the submission."""
    return None if moment is None or is_relative(moment) else parse_moment(moment, "time")


def _moment(value: Any, field: str) -> str:
    """Returns a time in UTC, or as a duration from the submission."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.isoformat()
    elif isinstance(value, timedelta) or (isinstance(value, str) and is_relative(value)):
        return str(_kept(value, format_duration(_ahead_ms(value, field))))
    if not isinstance(value, str):
        raise InvalidInput(field, _MOMENT_EXPECTED, value)
    moment = parse_moment(value, field)
    if not 0 <= moment <= MAX_MS:
        raise InvalidInput(field, f"a time between 1970 and {format_moment(MAX_MS)}", value)
    return str(_kept(value, format_moment(moment)))


def _ahead_ms(value: object, field: str) -> int:
    try:
        return parse_duration_ms(value, field)
    except InvalidInput:
        raise InvalidInput(field, _MOMENT_EXPECTED, value) from None


def _delay(value: object, field: str) -> Any:
    return _kept(value, seconds(value, field))


def _rate(value: Any, field: str) -> RateLimit:
    if isinstance(value, str):
        return _read_rate(value, field)
    rate: RateLimit = converted(value, RateLimit, field)
    per = _kept(rate.per, seconds(rate.per, f"{field}.per"))
    return rate if per is rate.per else RateLimit(rate.key, per, rate.max)


def _read_rate(text: str, field: str) -> RateLimit:
    key, _, numbers = text.rpartition("=")
    most, separator, per = numbers.partition("/")
    if not key or not separator or not _is_number(most):
        raise InvalidInput(field, "KEY=MAX/TIME, such as api=10/1m", text)
    return RateLimit(key, seconds(per, field), int(most))


def _concurrency(value: Any, field: str) -> Concurrency:
    if isinstance(value, str):
        return _read_concurrency(value, field)
    limit: Concurrency = converted(value, Concurrency, field)
    return limit


def _read_concurrency(text: str, field: str) -> Concurrency:
    key, separator, most = text.rpartition("=")
    if not separator:
        return Concurrency(text)
    if not key or not _is_number(most):
        raise InvalidInput(field, "KEY or KEY=MAX, such as repo-42=1", text)
    return Concurrency(key, int(most))


def _limits(value: Any, field: str) -> JobLimits | None:
    given: JobLimits = converted(value, JobLimits, field)
    for name in ("processes", "open_files"):
        count = getattr(given, name)
        if count is not None and (type(count) is not int or not 1 <= count <= MAX_COUNT):
            raise InvalidInput(f"{field}.{name}", f"an integer from 1 to {MAX_COUNT}", count)
    settled = JobLimits(
        _size_limit(given.memory, f"{field}.memory"),
        None if given.cpu_time is None else _duration(given.cpu_time, f"{field}.cpu_time"),
        given.processes,
        given.open_files,
        _size_limit(given.disk, f"{field}.disk"),
    )
    return None if settled == JobLimits() else given if settled == given else settled


def _size_limit(value: int | str | None, field: str) -> int | None:
    size = None if value is None else parse_size(value, field)
    if size == 0:
        raise InvalidInput(field, "more than 0 bytes", value)
    return size


def read_limits(texts: Sequence[str], field: str) -> JobLimits | None:
    """Parses NAME=AMOUNT, as flags write it."""
    pairs: dict[str, Any] = read_pairs(split(texts), field)
    for name in ("processes", "open_files"):
        if name in pairs:
            pairs[name] = _read_number(pairs[name], f"{field} {name}")
    return _limits(pairs, field)


def converted(value: Any, kind: type[Any], field: str) -> Any:
    """Returns a struct as it is, and a mapping as a struct."""
    if isinstance(value, kind):
        return value
    from windlass.domain.values.conversion import convert  # rarely needed, and slow to import

    return convert(value, kind, field)


def _same(value: Any, _field: str) -> Any:
    return value


def _tuple(value: Any, field: str) -> tuple[Any, ...]:
    if isinstance(value, str | int):
        return (value,)
    if not isinstance(value, Sequence):
        raise InvalidInput(field, "a list", value)
    return tuple(value)


def _references(value: Any, field: str) -> tuple[Any, ...]:
    """Returns ids, names and handles of jobs; handles stay, since they may have no id yet."""
    one = not isinstance(value, Sequence) and hasattr(type(value), "id")
    references = (value,) if one else _tuple(value, field)
    for reference in references:
        known = isinstance(reference, int | str) or hasattr(type(reference), "id")
        if not known or isinstance(reference, bool):
            raise InvalidInput(field, "ids, names or handles of jobs", reference)
    return references


def _mapping(value: Any, field: str) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        raise InvalidInput(field, "a mapping", value)
    return dict(value) or None


def read_pairs(texts: Sequence[str], field: str) -> dict[str, str]:
    """Parses NAME=VALUE, as flags write it."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise InvalidInput(field, "name=value", text)
        pairs[name] = value
    return pairs


def split(texts: Sequence[str]) -> list[str]:
    """Returns the parts of comma-separated texts."""
    return [part for text in texts for part in text.split(",") if part]


def _read_number(text: str, field: str) -> int:
    if not _is_number(text):
        raise InvalidInput(field, "a whole number of 0 or more", text)
    return int(text)


def _read_id(text: str, field: str) -> int:
    if not _is_number(text):
        raise InvalidInput(field, "the id of a job", text)
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


TEXT: Final = Form(name="text", canonical=_same)
PRIORITY: Final = Form(name="high, medium, low or a number", canonical=_same)
JSON: Final = Form(name="JSON", canonical=_same, note="JSON, or @FILE to read it from a file.")
NUMBER: Final = Form(
    name="number", canonical=_same, read=lambda texts, field: _read_number(texts[0], field)
)
SWITCH: Final = Form(name="true or false", canonical=_same, read=lambda texts, _: bool(texts))
TEXTS: Final = Form(name="list", canonical=_tuple, repeats=True, note=REPEATABLE)
CLAUSES: Final = replace(TEXTS, in_file=str | list[str])
REFERENCES: Final = Form(
    name="list of ids and names", canonical=_references, repeats=True,
    note="On the command line by id; repeatable.",
    read=lambda texts, field: tuple(_read_id(text, field) for text in texts),
    in_file=int | str | list[int | str],
)  # fmt: skip
AMOUNTS: Final = Form(
    name="mapping", canonical=_mapping, read=lambda texts, field: read_pairs(split(texts), field),
    repeats=True, note="NAME=AMOUNT, several comma-separated; repeatable.",
)  # fmt: skip
LABELS: Final = Form(
    name="mapping", canonical=_mapping, read=read_pairs, repeats=True,
    in_file=dict[str, Scalar], note="NAME=VALUE; repeatable.",
)  # fmt: skip
DURATION: Final = Form(
    name="duration", canonical=_duration, varies=True,
    note="Such as 90 (seconds), 90s, 15m or 6h.",
)  # fmt: skip
DELAY: Final = replace(DURATION, canonical=_delay)
TIMEOUT: Final = Form(
    name="duration or none", canonical=partial(_or_word, NONE, _duration), word=NONE, varies=True,
    note="Such as 90 (seconds), 15m or 6h, or none.",
)  # fmt: skip
GRACE: Final = Form(
    name="duration or never", canonical=partial(_or_word, NEVER, _delay), word=NEVER, varies=True
)
KEY_WINDOW: Final = Form(
    name="duration or forever", canonical=partial(_or_word, FOREVER, _duration), word=FOREVER,
    varies=True, note="Such as 90 (seconds), 15m or 6h; or forever.",
)  # fmt: skip
MOMENT: Final = Form(
    name="time", canonical=_moment, varies=True,
    note="A time such as 2030-01-02T03:04:05Z, or a duration from now.",
)  # fmt: skip
RATE: Final = Form(
    name="key, max and per", canonical=_rate, varies=True, note="KEY=MAX/TIME, such as api=10/1m."
)
CONCURRENCY: Final = Form(
    name="key and max", canonical=_concurrency, varies=True, note="KEY or KEY=MAX."
)
LIMITS: Final = Form(
    name="limits by name", canonical=_limits, read=read_limits, varies=True, repeats=True,
    note="NAME=AMOUNT, several comma-separated; repeatable.",
)  # fmt: skip


_NEVER_ENDS: Final = 2**62


def canonical_window(value: Duration | None, key: str | None, field: str) -> Duration | None:
    """Returns `key_for` in its canonical form; raises `InvalidInput` without a key."""
    if value is None:
        return None
    if key is None:
        raise InvalidInput(field, "given with a key", value)
    length: Duration = KEY_WINDOW.canonical(value, field)
    return length


def bound_until(key_for: Duration | None, created_at: int) -> int:
    """Returns until when a key is reserved, if its holder has ended by then."""
    if key_for == FOREVER:
        return _NEVER_ENDS
    return created_at + (milliseconds(key_for) or 0)


class Backoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How long a job waits before a retry. Missing fields come from the server's settings."""

    initial: Duration | None = None
    factor: float | None = None
    max: Duration | None = None
    jitter: float | None = None


def _failures(value: Any, field: str) -> tuple[str, ...]:
    if isinstance(value, str | type):
        value = (value,)
    if not isinstance(value, Sequence | set | frozenset):
        raise InvalidInput(field, "a list of failures", value)
    return tuple(_failure(one, field) for one in value)


def _failure(value: Any, field: str) -> Any:
    if isinstance(value, type) and issubclass(value, BaseException):
        return exception_name(value)
    if isinstance(value, type) or not isinstance(value, str):
        raise InvalidInput(field, "classes of failures, and classes or names of exceptions", value)
    return str(value)


def exception_name(kind: type) -> str:
    """Returns the name of an exception class: built-in ones without a module."""
    module = importable_name(kind.__module__)
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _backoff(value: Any, field: str) -> Backoff | None:
    given: Backoff = converted(value, Backoff, field)
    settled = Backoff(
        None if given.initial is None else seconds(given.initial, f"{field}.initial"),
        _number(given.factor, f"{field}.factor", 1, 1_000),
        None if given.max is None else seconds(given.max, f"{field}.max"),
        _number(given.jitter, f"{field}.jitter", 0, 1),
    )
    low, high = settled.initial, settled.max
    if low is not None and high is not None and float(high) < float(low):
        raise InvalidInput(f"{field}.max", f"at least {field}.initial", given.max)
    if settled == Backoff():
        return None
    # Encoded: 1 equals 1.0, but the stored text must not depend on how it was written.
    encode = msgspec.json.encode
    return given if encode(given) == encode(settled) else settled


def _number(value: object, field: str, low: float, high: float) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidInput(field, f"a number from {low} to {high}", value)
    return float(value)


def _read_backoff(texts: Sequence[str], field: str) -> Backoff | None:
    pairs: dict[str, Any] = read_pairs(split(texts), field)
    for name in ("factor", "jitter"):
        if name in pairs:
            pairs[name] = _read_fraction(pairs[name], f"{field} {name}")
    return _backoff(pairs, field)


def _read_fraction(text: str, field: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(field, "a number", text) from None


FAILURES: Final = Form(
    name="failures", canonical=_failures, read=lambda texts, _: tuple(split(texts)), repeats=True,
    in_file=str | list[str],
    note="NAME, several comma-separated; repeatable.",
)  # fmt: skip
BACKOFF: Final = Form(
    name="initial, factor, max and jitter", canonical=_backoff, read=_read_backoff, varies=True,
    repeats=True,
    note="NAME=VALUE, several comma-separated, such as initial=1s,factor=2,max=1m,jitter=0.2.",
)  # fmt: skip

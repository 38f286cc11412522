"""How options about retries are written: failures by class or exception, and the backoff."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from windlass.domain.job.forms import Duration, Form, converted, read_pairs, seconds, split
from windlass.domain.tasks.main_module import importable_name
from windlass.domain.values.errors import InvalidInput


class Backoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How long a job waits before a retry. What is missing comes from the server's settings."""

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
    """Returns the name of a class of exceptions: built-in ones have no module."""
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
    return given if _written(given) == _written(settled) else settled


def _number(value: object, field: str, low: float, high: float) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidInput(field, f"a number from {low} to {high}", value)
    return float(value)


def _written(backoff: Backoff) -> bytes:
    return msgspec.json.encode(backoff)


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
    name="failures", canonical=_failures, read=lambda texts, _f, _n: tuple(split(texts)),
    repeats=True, in_file=str | list[str],
    note="NAME, several comma-separated; repeatable.",
)  # fmt: skip
BACKOFF: Final = Form(
    name="initial, factor, max and jitter", canonical=_backoff,
    read=lambda texts, f, _n: _read_backoff(texts, f), varies=True, repeats=True,
    note="NAME=VALUE, several comma-separated, such as initial=1s,factor=2,max=1m,jitter=0.2.",
)  # fmt: skip

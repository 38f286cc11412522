"""Parses and formats durations and sizes (`90`, `15m`, `2m30s`, `512MiB`), and counts things.

Times are RFC 3339 in UTC, the only form that enters or leaves the system.
"""

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Final

from windlass.domain.values.errors import InvalidInput

_DAY_MS: Final = 86_400_000

# A hundred years. Longer ones are mistakes, and sums of times stay far from 64 bits.
DURATION_LIMIT_MS: Final = 36_525 * _DAY_MS
SIZE_LIMIT: Final = 2**62

_TEXT_LIMIT: Final = 64
_DURATION_UNITS: Final = {
    "w": 7 * _DAY_MS, "d": _DAY_MS, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1,
}  # fmt: skip
_DURATION: Final = re.compile(
    "".join(rf"(?:(?P<{unit}>[0-9]+(?:\.[0-9]+)?){unit})?" for unit in _DURATION_UNITS)
)
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_BINARY_UNITS: Final = {
    name: 1024**power for power, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
}
_DECIMAL_UNITS: Final = {
    name: 1000**power for power, name in enumerate(("B", "KB", "MB", "GB", "TB", "PB"))
}
_SIZE_UNITS: Final = {
    "": 1,
    **{name.lower(): size for name, size in (_BINARY_UNITS | _DECIMAL_UNITS).items()},
}
_SIZE: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[a-z]*)")

_MAX_WHOLE: Final = 10_000  # if its unit is not the largest one: 4000GiB, not 3.9TiB
_BEFORE_UNIT: Final = re.compile(r"(?<=[0-9])(?=[A-Z])")

_DURATION_EXPECTED: Final = "a duration such as 90 (seconds), 500ms, 90s, 15m, 6h, 2d, 1w or 2m30s"
_SIZE_EXPECTED: Final = "a size such as 1024 (bytes), 512MiB, 4GiB or 1GB"


DurationLike = float | str | timedelta  # seconds, text such as 15m, or a timedelta


def wait_seconds(timeout: DurationLike | None) -> float | None:
    """Returns the maximum wait in seconds; None means without end."""
    if timeout is None or isinstance(timeout, int | float):
        return timeout
    return parse_duration_ms(timeout, "timeout") / 1000


def parse_duration_ms(value: object, field: str = "duration") -> int:
    """Returns the milliseconds of a duration; a number without a unit counts seconds."""
    amount = _duration_text_ms(value) if isinstance(value, str) else _seconds_ms(value)
    if amount is None or amount != int(amount):
        raise InvalidInput(field, _DURATION_EXPECTED, value)
    if amount > DURATION_LIMIT_MS:
        raise InvalidInput(field, f"at most {format_duration(DURATION_LIMIT_MS)}", value)
    return int(amount)


def format_duration(ms: int) -> str:
    """Formats a duration like Go, without zero parts: 2m30s, 1h2m, 45s, 500ms, 1.5s."""
    if ms < 0:
        return "-" + format_duration(-ms)
    if ms < 1000:
        return f"{ms}ms" if ms else "0s"
    minutes, rest = divmod(ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds, fraction = divmod(rest, 1000)
    parts = [f"{hours}h"] if hours else []
    if minutes:
        parts.append(f"{minutes}m")
    if rest:
        decimals = f".{fraction:03d}".rstrip("0") if fraction else ""
        parts.append(f"{seconds}{decimals}s")
    return "".join(parts)


def readable_duration(ms: int) -> str:
    """Returns a duration as people read it: 340 ms, 4.1 s, 3 min 20 s, 2 h 5 min, 3 d 4 h.

    The dashboard uses the same format (`dashboard/src/ui/format.ts`). Use `format_duration` for
    what people can type.
    """
    if ms < 0:
        return "−" + readable_duration(-ms)
    if ms < 1_000:
        return f"{ms} ms" if ms else "0 s"
    if ms < 9_950:
        return f"{_one_decimal(_rounded(ms, 100))} s"
    if ms < 59_500:
        return f"{_rounded(ms, 1_000)} s"
    if ms < 3_599_500:
        return _two_parts(_rounded(ms, 1_000), 60, "min", "s")
    if ms < _DAY_MS - 30_000:
        return _two_parts(_rounded(ms, 60_000), 60, "h", "min")
    return _two_parts(_rounded(ms, 3_600_000), 24, "d", "h")


def parse_size(value: object, field: str = "size") -> int:
    """Returns the bytes of a size, rounded down; a number without a unit counts bytes."""
    amount: Decimal | int | None = None
    if isinstance(value, str):
        amount = _size_text(value)
    elif isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        amount = value
    if amount is None:
        raise InvalidInput(field, _SIZE_EXPECTED, value)
    if amount > SIZE_LIMIT:
        raise InvalidInput(field, f"at most {SIZE_LIMIT} bytes", value)
    return int(amount)


def format_size(size: int) -> str:
    """Formats a size in a unit that shows it exactly with one decimal, else rounded."""
    if size < 0:
        return "-" + format_size(-size)
    for units in (_BINARY_UNITS, _DECIMAL_UNITS):
        name, unit = _largest_unit(units, size)
        if size * 10 % unit == 0:
            return f"{_one_decimal(size * 10 // unit)}{name}"
    for units in (_BINARY_UNITS, _DECIMAL_UNITS):
        for name, unit in reversed(units.items()):
            if unit > 1 and size % unit == 0 and size // unit < _MAX_WHOLE:
                return f"{size // unit}{name}"
    name, unit = _largest_unit(_BINARY_UNITS, size)
    return f"{_one_decimal((size * 10 + unit // 2) // unit)}{name}"


def exact_size(size: int) -> str:
    """Formats like `format_size`, but never rounds, so that the result can be set again."""
    shown = format_size(size)
    return shown if parse_size(shown) == size else f"{size}B"


def readable_size(size: int) -> str:
    """Returns a size as people read it: 512 B, 8.5 KiB, 11.1 MiB, 250 GiB, 8 TiB.

    The dashboard uses the same format. Use `format_size` for what people can type.
    """
    if size < 0:
        return "−" + readable_size(-size)
    units = list(_BINARY_UNITS.items())
    for (name, unit), (_, larger) in pairwise(units):
        # What rounds to 1,024 of a unit is 1 of the next.
        if _rounded(size, unit) * unit < larger:
            return f"{_in_unit(size, unit)} {name}"
    name, unit = units[-1]
    return f"{_in_unit(size, unit)} {name}"


def readable_limit(size: int) -> str:
    """Returns a size set by somebody, in a unit that shows it exactly: 10 MB, 512 MiB."""
    return _BEFORE_UNIT.sub(" ", format_size(size))


def _in_unit(size: int, unit: int) -> str:
    tenths = _rounded(size * 10, unit)
    return _one_decimal(tenths) if tenths < 1_000 else f"{_rounded(size, unit)}"


def _rounded(amount: int, unit: int) -> int:
    return (amount + unit // 2) // unit


def _two_parts(amount: int, in_big: int, big: str, small: str) -> str:
    whole, rest = divmod(amount, in_big)
    return f"{whole} {big} {rest} {small}" if rest else f"{whole} {big}"


def _seconds_ms(value: object) -> int | None:
    if isinstance(value, timedelta):
        # Rounded up, so that a short time does not become zero.
        return -(-value // timedelta(milliseconds=1)) if value >= timedelta() else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return value * 1000 if value >= 0 else None
    if not math.isfinite(value) or value < 0:
        return None
    return round(min(value, DURATION_LIMIT_MS) * 1000)  # which is too long in any case


def _duration_text_ms(value: str) -> Decimal | None:
    text = value.strip().lower()
    if not text or len(text) > _TEXT_LIMIT:
        return None
    if _NUMBER.fullmatch(text):
        return Decimal(text) * 1000
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    parts = ((match[unit], size) for unit, size in _DURATION_UNITS.items())
    return sum((Decimal(number) * size for number, size in parts if number), Decimal(0))


def _size_text(value: str) -> Decimal | None:
    text = value.strip().lower()
    match = _SIZE.fullmatch(text) if len(text) <= _TEXT_LIMIT else None
    unit = _SIZE_UNITS.get(match["unit"]) if match else None
    return Decimal(match["number"]) * unit if match and unit else None


def _largest_unit(units: dict[str, int], size: int) -> tuple[str, int]:
    fitting = [(name, unit) for name, unit in units.items() if unit <= size]
    return fitting[-1] if fitting else ("B", 1)


def _one_decimal(tenths: int) -> str:
    whole, tenth = divmod(tenths, 10)
    return f"{whole}.{tenth}" if tenth else str(whole)


def counted(number: int, noun: str) -> str:
    """Returns "1 job" or "1,200 jobs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_moment(ms: int) -> str:
    """Formats a time as `2026-01-02T12:34:56.789Z`."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown_moment(ms: int | None) -> str | None:
    """Formats a time that may be missing: None, or 0."""
    return format_moment(ms) if ms else None


def parse_moment(text: str, field: str) -> int:
    """Returns milliseconds since 1970; refuses a time without a zone."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            # In UTC, a time near the limits of the calendar may be outside of it.
            return (moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(field, "a time such as 2026-01-02T12:34:56Z", text)


def month_of(ms: int) -> int:
    """Returns the month of a time, in UTC, as a number such as 202611."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.year * 100 + moment.month


def next_month(ms: int) -> int:
    """Returns when the month of a time ends, in UTC."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    year, month = divmod(moment.year * 12 + moment.month, 12)
    return (datetime(year, month + 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)

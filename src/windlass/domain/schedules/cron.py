"""Computes the slots of a cron line as milliseconds since 1970, in any time zone.

Lines with a fixed time of day follow Debian's cron when clocks change: a slot in the skipped hour
comes right after it, and of a repeated hour the first counts. Lines such as `*/15 * * * *` or `0
* * * *` follow real time.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from windlass.domain.values.errors import InvalidInput

LINE_LIMIT: Final = 200
FIELDS: Final = 5
_HOUR_MS: Final = 3_600_000

_NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_EXPECTED: Final = (
    "five fields (minute hour day month weekday) such as */15 * * * *, or one of "
    + ", ".join(_NAMED)
)
_STEP: Final = re.compile(r"\*/([1-9]\d*) \* \* \* \*")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Cron:
    """One line in one time zone. Its slots do not depend on where the search begins."""

    def __init__(self, line: str, zone: str = "UTC", field: str = "") -> None:
        self._line = _check_line(line, f"{field}cron")
        self._zone = find_zone(zone, f"{field}zone")
        if self.after(0) is None:
            raise InvalidInput(f"{field}cron", "a line that matches some date", line)

    def after(self, ms: int) -> int | None:
        """Returns the first slot after this time; None if there is none in fifty years."""
        return next(self.slots(ms), None)

    def slots(self, after: int) -> Iterator[int]:
        """Yields the slots after this time, in order."""
        start = (_EPOCH + timedelta(milliseconds=after)).astimezone(self._zone)
        for moment in CronSim(self._line, start):
            slot = (moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
            # In the second of two equal hours, the library repeats the first one's slot.
            if slot > after:
                after = slot
                yield slot

    def newest(self, after: int, until: int, count: int) -> list[int]:
        """Returns the last `count` slots after `after` and not after `until`.

        The cost depends on `count`, not on the time between the two.
        """
        span = _HOUR_MS
        while True:
            start = max(after, until - span)
            found = _up_to(self.slots(start), until)
            if len(found) >= count or start == after:
                return found[-count:]
            span *= 2


@lru_cache(maxsize=1_000)
def in_words(line: str, zone: str) -> str:
    """Returns when a line that was accepted comes due: "Every 15 minutes, UTC"."""
    plain = _check_line(line, "cron")
    step = _STEP.fullmatch(plain)
    if step is not None and 60 % int(step[1]) == 0:
        text = "Every minute" if step[1] == "1" else f"Every {step[1]} minutes"
    else:
        text = str(CronSim(plain, _EPOCH).explain())
    return f"{text}, {'UTC' if zone == 'UTC' else f'{zone} time'}"


def _up_to(slots: Iterator[int], until: int) -> list[int]:
    found: list[int] = []
    for slot in slots:
        if slot > until:
            break
        found.append(slot)
    return found


def _check_line(line: object, field: str) -> str:
    if not isinstance(line, str) or len(line) > LINE_LIMIT:
        raise InvalidInput(field, _EXPECTED, line)
    plain = _NAMED.get(line.strip().lower(), line)
    if len(plain.split()) != FIELDS:
        raise InvalidInput(field, _EXPECTED, line)
    try:
        CronSim(plain, _EPOCH)
    except CronSimError as error:
        raise InvalidInput(field, f"{_EXPECTED} ({str(error).lower()})", line) from None
    except (AssertionError, TypeError, ValueError):  # of odd mixtures such as MON#2/2
        raise InvalidInput(field, _EXPECTED, line) from None
    return plain


def find_zone(name: object, field: str = "zone") -> tzinfo:
    """Returns the time zone with this IANA name."""
    expected = "the name of a time zone such as UTC or Europe/Berlin"
    if name == "UTC":
        return UTC
    if not isinstance(name, str) or not name or len(name) > LINE_LIMIT or not name.isascii():
        raise InvalidInput(field, expected, name)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no name at all, or a folder
        raise InvalidInput(field, expected, name) from None

"""Slots of cron lines: zones, clocks that are changed, leap days, and lines that never come."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.schedules import Cron, in_words
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_moment, parse_moment

BERLIN = "Europe/Berlin"  # forward 2026-03-29 02:00 → 03:00, back 2026-10-25 03:00 → 02:00


def ms(text: str) -> int:
    return parse_moment(text, "moment")


def slots(line: str, zone: str, after: str, count: int) -> list[str]:
    found = islice(Cron(line, zone).slots(ms(after)), count)
    return [format_moment(slot)[:16] for slot in found]


def test_a_slot_is_later_than_the_moment_that_is_asked_about() -> None:
    cron = Cron("*/15 * * * *")
    assert cron.after(ms("2026-01-01T00:00:00Z")) == ms("2026-01-01T00:15:00Z")
    assert cron.after(ms("2026-01-01T00:14:59.999Z")) == ms("2026-01-01T00:15:00Z")
    assert cron.after(ms("2026-01-01T00:15:00Z") - 1) == ms("2026-01-01T00:15:00Z")


@pytest.mark.parametrize(
    ("line", "zone", "after", "expected"),
    [
        # 02:30 does not exist on the 29th: it comes when the hour that is left out is over.
        ("30 2 * * *", BERLIN, "2026-03-28T12:00:00Z", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        # Several times of that hour are one slot.
        ("0,20,40 2 * * *", BERLIN, "2026-03-29T00:30:00Z",
         ["2026-03-29T01:00", "2026-03-30T00:00"]),
        # 02:30 exists twice on the 25th: the first one counts.
        ("30 2 * * *", BERLIN, "2026-10-24T12:00:00Z", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        # Asked between the two, the second one is no slot.
        ("30 2 * * *", BERLIN, "2026-10-25T00:45:00Z", ["2026-10-26T01:30"]),
        ("30 2 * * *", BERLIN, "2026-10-25T01:10:00Z", ["2026-10-26T01:30"]),
        # Real time goes on in both hours.
        ("30 * * * *", BERLIN, "2026-10-25T00:00:00Z",
         ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"]),
        ("*/30 * * * *", BERLIN, "2026-03-29T00:15:00Z",
         ["2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30"]),
        # A zone with half an hour of daylight saving, and one that skipped a whole day.
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
         ["2026-04-04T14:45", "2026-04-05T15:15"]),
        ("0 12 30 12 *", "Pacific/Apia", "2011-01-01T00:00:00Z", ["2011-12-30T10:00"]),
        # Leap days.
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", ["2104-02-29T00:00"]),
        ("59 23 L * *", "UTC", "2028-02-01T00:00:00Z", ["2028-02-29T23:59", "2028-03-31T23:59"]),
        ("@weekly", "UTC", "2026-01-01T00:00:00Z", ["2026-01-04T00:00", "2026-01-11T00:00"]),
        ("0 9 * * MON-FRI", "America/New_York", "2026-03-06T20:00:00Z",
         ["2026-03-09T13:00", "2026-03-10T13:00"]),
    ],
)  # fmt: skip
def test_slots(line: str, zone: str, after: str, expected: list[str]) -> None:
    assert slots(line, zone, after, len(expected)) == expected


LINES = ["*/7 * * * *", "30 2 * * *", "15,45 1-3 * * *", "0 */2 * * *", "5 0 29 2 *", "1 2 3 * 5"]
ZONES = ["UTC", BERLIN, "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu"]
MOMENTS = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1))  # noqa: DTZ001 - UTC below


@given(st.sampled_from(LINES), st.sampled_from(ZONES), MOMENTS, st.integers(1, 5))
def test_the_slots_do_not_depend_on_where_one_begins(
    line: str, zone: str, moment: datetime, hours: int
) -> None:
    """So servers that look at different times agree, and the newest ones can be found alone."""
    cron = Cron(line, zone)
    start = int(moment.replace(tzinfo=UTC).timestamp() * 1000)
    later = start + int(timedelta(hours=hours).total_seconds() * 1000)
    found = list(islice(cron.slots(start), 50))
    assert found == sorted(set(found))
    rest = [slot for slot in found if slot > later]
    assert list(islice(cron.slots(later), len(rest))) == rest


@given(st.sampled_from(LINES), st.sampled_from(ZONES), MOMENTS, st.integers(1, 30))
def test_the_newest_slots_are_the_last_of_all(
    line: str, zone: str, moment: datetime, count: int
) -> None:
    cron = Cron(line, zone)
    start = int(moment.replace(tzinfo=UTC).timestamp() * 1000)
    until = start + int(timedelta(days=3).total_seconds() * 1000)
    all_of_them = list(takewhile(lambda slot: slot <= until, cron.slots(start)))
    assert cron.newest(start, until, count) == all_of_them[-count:]


@pytest.mark.parametrize(
    "line",
    [
        "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *",
        "* * * * 8", "*/0 * * * *", "5-1 * * * *", "a * * * *", "0 0 30 2 *", "0 0 31 4,6 *",
        "0 0 * * MON#2/2", "0 0 * * MON#6", "@reboot", "@never", "0 0 1-L * *", "* " * 200,
    ],
)  # fmt: skip
def test_lines_that_cannot_be_are_refused(line: str) -> None:
    with pytest.raises(InvalidInput, match="expected cron to be five fields") as refused:
        Cron(line)
    assert refused.value.field == "cron"


@pytest.mark.parametrize(
    "zone", ["", "Mars/Olympus", "../etc/passwd", "/etc/passwd", "Europe", "Europe/", "a\0b", "ü"]
)
def test_zones_that_nobody_knows_are_refused(zone: str) -> None:
    with pytest.raises(InvalidInput, match="expected zone to be the name of a time zone"):
        Cron("* * * * *", zone)


@pytest.mark.parametrize(
    ("line", "zone", "words"),
    [
        ("@daily", "UTC", "At 00:00 every day, UTC"),
        ("30 2 * * 1-5", "Asia/Tokyo", "At 02:30 on Monday through Friday, Asia/Tokyo time"),
        ("*/15 * * * *", "UTC", "Every 15 minutes, UTC"),
    ],
)
def test_a_line_is_told_in_words(line: str, zone: str, words: str) -> None:
    assert in_words(line, zone) == words

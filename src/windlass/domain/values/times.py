"""Times as text: RFC 3339 in UTC, the only form that enters or leaves the system."""

from datetime import UTC, datetime, timedelta

from windlass.domain.values.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_moment(ms: int) -> str:
    """Formats a time as `2026-01-02T12:34:56.789Z`."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_moment(text: str, field: str) -> int:
    """Returns milliseconds since 1970; refuses a time without a zone."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            # In UTC, a time near the ends of the calendar may be outside of it.
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

"""The orders of lists of jobs, and where a list continues."""

from windlass.domain.rows.views import JobSort, Place
from windlass.domain.values.errors import InvalidInput


def parse_sort(given: str | None) -> JobSort:
    """Returns the order of a list of jobs."""
    try:
        return JobSort(given or JobSort.NEWEST)
    except ValueError:
        hint = "a list in another order would read every job"
        raise InvalidInput("sort", f"one of {', '.join(JobSort)}", given, hint) from None


def parse_place(given: str | None) -> Place | None:
    """Returns where a list continues, from the `next` of the page before."""
    if not given or given == "0":
        return None
    first, _, last = given.rpartition(":")
    try:
        place = int(first or "0"), int(last)
    except ValueError:
        place = 0, -1
    if place[1] < 0 or max(map(abs, place)) > 2**62 or not given.isascii():
        raise InvalidInput("after", "the `next` of another page", given)
    return place


def format_place(place: Place | None) -> str | None:
    """Returns a place as clients send it back."""
    if place is None:
        return None
    return f"{place[0]}:{place[1]}" if place[0] else str(place[1])

"""Decides whether a job has missed its deadline to start or to end."""

from enum import Enum

DEADLINE = "deadline"


class Late(Enum):
    """The deadline that a job has missed."""

    START = "start_before"
    FINISH = "finish_before"

    @property
    def reason(self) -> str:
        """Returns the reason for the log, which starts with a word to search for."""
        return f"{DEADLINE}: {self.value} has passed"


def late_for(
    start_before: int | None, finish_before: int | None, has_run: bool, now: int
) -> Late | None:
    """Returns the deadline that an open job missed; one that has run is never late to start."""
    if finish_before is not None and now >= finish_before:
        return Late.FINISH
    if start_before is not None and now >= start_before and not has_run:
        return Late.START
    return None

"""Deadlines of jobs: when one has to have started, and when it has to have ended."""

from enum import Enum

DEADLINE = "deadline"


class Late(Enum):
    """What a job is too late for."""

    START = "start_before"
    FINISH = "finish_before"

    @property
    def reason(self) -> str:
        """For the log: the word comes first, so that it can be looked for."""
        return f"{DEADLINE}: {self.value} has passed"


def late_for(
    start_before: int | None, finish_before: int | None, has_run: bool, now: int
) -> Late | None:
    """Returns what an open job is too late for; one that has run before is not late to start."""
    if finish_before is not None and now >= finish_before:
        return Late.FINISH
    if start_before is not None and now >= start_before and not has_run:
        return Late.START
    return None

"""Gaps in the ids: where a store went on with numbers that no answer can have named before.

A restored backup, and a standby that took over, may know less than what was answered. If they went
on counting, two callers would get the same id. So ids jump there, to a number that rises with the
time. A store that gives fewer than half of `PER_MS` ids a millisecond has never been so far,
whatever was lost and however often the same backup is restored, unless within two seconds.
"""

from typing import Final, NamedTuple

BEGIN_MS: Final = 1_735_689_600_000  # 2025-01-01, before any store was made
PER_MS: Final = 100  # below 2**53 for 2,800 years
MARGIN: Final = 100_000  # what others may take of the old numbers meanwhile
SHAPE_MARGIN: Final = 100_000  # shapes have 32 bits, and nobody is told their numbers


class Mark(NamedTuple):
    """An event of which somebody was told: a store that does not have it has lost commits.

    `epoch` is that of the store then, 0 if that is not said.
    """

    seq: int
    at: int
    epoch: int = 0


class Gap(NamedTuple):
    """Ids above the `last_…` ones and not above `first` were given to nobody here.

    If the store was found to have `lost` commits, they may have been given before, and what they
    meant is gone. `first` is the same for jobs, workflows and events, and tells gaps apart. The
    timelines are those of PostgreSQL before and after, 0 if no new one began.
    """

    first: int
    at: int
    last_job: int
    last_workflow: int
    last_event: int
    timeline_before: int = 0
    timeline: int = 0
    lost: int = 0  # 1 if commits were lost

    def has(self, last: int, number: int) -> bool:
        """Returns whether a number lies between `last`, one of its own, and its end."""
        return last < number <= self.first


def first_after(newest: int, now_ms: int) -> int:
    """Returns after which number ids go on, if `newest` is the highest that is known."""
    return max(newest + MARGIN, (now_ms - BEGIN_MS) * PER_MS)

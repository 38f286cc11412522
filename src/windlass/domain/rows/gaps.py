"""Gaps in the ids: where a store continued with numbers that no answer can have named before.

A restored backup, or a standby that took over, may lack what was already answered. If it kept
counting, two callers would get the same id. So ids jump there, to a number that rises with time. A
store that assigns fewer than half of `PER_MS` ids per millisecond has never reached that number,
whatever was lost and however often the same backup is restored, unless twice within two seconds.
"""

from typing import Final, NamedTuple

from windlass.domain.values.errors import Lost
from windlass.domain.values.quantities import format_moment

BEGIN_MS: Final = 1_735_689_600_000  # 2025-01-01, before any store was made
PER_MS: Final = 100  # below 2**53 for 2,800 years
MARGIN: Final = 100_000  # how many old numbers others may still use meanwhile
SHAPE_MARGIN: Final = 100_000  # shape ids have 32 bits and are never shown to anyone


class Mark(NamedTuple):
    """An event that somebody was told about: a store without it has lost commits.

    `epoch` is the store's at that time, 0 if unknown.
    """

    seq: int
    at: int
    epoch: int = 0


class Gap(NamedTuple):
    """No id above the `last_…` ones and up to `first` was assigned here.

    If the store was found to have `lost` commits, those ids may have been assigned before, and what
    they named is gone. `first` is the same for jobs, workflows and events, and identifies the gap.
    The timelines are PostgreSQL's before and after, 0 if no new one began.
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
        """Returns whether a number lies in the gap; `last` is the gap's last id of that kind."""
        return last < number <= self.first


def given_again(kind: str, number: int, given_at: int) -> Lost:
    """Returns the error for an id that stands for something made after `given_at` (ms)."""
    moment = format_moment(given_at)
    why = f"its server lost what was submitted at {moment}, and gave its id to another {kind}"
    return Lost(kind, number, f"{kind} {number} was lost: {why}; submit it again")


def first_after(newest: int, now_ms: int) -> int:
    """Returns the number after which ids continue, if `newest` is the highest known id."""
    return max(newest + MARGIN, (now_ms - BEGIN_MS) * PER_MS)

"""Which slots of the figures an answer shows: few enough, and still kept."""

from typing import Final, NamedTuple

from windlass.domain.rows.series import HOUR, MINUTE, TEN_MINUTES, slot_of
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_moment

MAX_SLOTS: Final = 1_000
MAX_ROWS: Final = 30_000  # that one answer may read


class Span(NamedTuple):
    """Slots of one length: the start of the first, and the end of the last."""

    start: int
    end: int
    step: int

    @property
    def slots(self) -> list[int]:
        return list(range(self.start, self.end, self.step))


def span_of(start: int, end: int, now: int, detail_ms: int, each: int) -> Span:
    """Returns slots that are kept and few enough, where every slot has about `each` rows.

    Minutes are kept for `detail_ms`.
    """
    if start >= end:
        raise InvalidInput("since", "before until", format_moment(start))
    wanted = MINUTE if end - start <= 2 * HOUR else TEN_MINUTES
    wanted = HOUR if end - start > 36 * HOUR else wanted
    kept = MINUTE if now - start <= detail_ms else TEN_MINUTES
    kept = HOUR if now - start > 7 * detail_ms else kept
    step = max(wanted, kept)
    while step < HOUR and (end - start) // step * max(1, each) > MAX_ROWS:
        step = TEN_MINUTES if step == MINUTE else HOUR
    if (end - start) // step > MAX_SLOTS:
        days = MAX_SLOTS * HOUR // 86_400_000
        raise InvalidInput("since", f"at most {days} days before until", format_moment(start))
    return Span(slot_of(start, step), slot_of(end - 1, step) + step, step)

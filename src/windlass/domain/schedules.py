"""Templates, schedules, runs and reactions: their rows, their slots, and what to do when.

Everything here is decided from rows and `now`; the engine reads and writes. Slots are milliseconds
since 1970, from a cron line in any time zone (`Cron`) or from an interval (`Every`). Cron lines
with a fixed time of day follow Debian's cron when clocks change: a slot in the skipped hour comes
right after it, and in a repeated hour the first one counts. Lines such as `*/15 * * * *` or `0 * *
* *` follow real time.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from enum import IntEnum, StrEnum
from functools import lru_cache
from itertools import count as counting
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_duration

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
        """Returns the last `count` slots after `after` and up to `until`.

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
    """Returns in words when a valid line is due: "Every 15 minutes, UTC"."""
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
    except (KeyError, ValueError, OSError):  # unknown, not a name, or a folder
        raise InvalidInput(field, expected, name) from None


MIN_EVERY_MS: Final = 1_000


class Every:
    """The slots anchor + k × interval for k ≥ 1: a late or long run does not move the next one."""

    def __init__(self, interval_ms: int, anchor: int) -> None:
        if interval_ms < MIN_EVERY_MS:
            least = format_duration(MIN_EVERY_MS)
            raise InvalidInput("every", f"at least {least}", format_duration(interval_ms))
        self._interval = interval_ms
        self._anchor = anchor

    def after(self, ms: int) -> int:
        """Returns the first slot after this time."""
        return self._anchor + self._interval * max(1, self._passed(ms) + 1)

    def slots(self, after: int) -> Iterator[int]:
        """Yields the slots after this time, in order."""
        return counting(self.after(after), self._interval)

    def newest(self, after: int, until: int, count: int) -> list[int]:
        """Returns the last `count` slots after `after` and up to `until`."""
        last = self._anchor + self._interval * self._passed(until)
        first = max(self.after(after), last - self._interval * (count - 1))
        return list(range(first, last + 1, self._interval))

    def _passed(self, ms: int) -> int:
        """Returns how many whole intervals lie between the anchor and this time."""
        return (ms - self._anchor) // self._interval


# A slot later than this, or later than the next slot, is missed; `catch_up` decides about it.
LATE_MS: Final = 60_000
CATCH_UP_LIMIT: Final = 1_000
WAITING_LIMIT: Final = 100  # runs of one schedule that wait for another to end


class Overlap(StrEnum):
    """What happens at a slot while a run of the schedule is still open."""

    ALLOW = "allow"  # another run starts beside it
    SKIP = "skip"  # the slot is left out
    QUEUE = "queue"  # the slot's run starts after it ends
    CANCEL = "cancel"  # it is canceled, and the slot's run starts after it ends


class CatchUp(StrEnum):
    """What happens to slots that passed while no server was running."""

    NONE = "none"
    LAST = "last"  # the newest of them runs
    ALL = "all"  # the newest ones run, as many as the schedule's limit allows


class RunState(IntEnum):
    """`STARTED` until we see the end of its workflow; the last three are final."""

    WAITING = 1
    STARTED = 2
    ENDED = 3
    SKIPPED = 4
    FAILED = 5  # it could not be started


MISSED: Final = "missed: no server started it in time"  # the reason of a skipped run


class Trigger(IntEnum):
    """The end of a workflow that a reaction responds to."""

    SUCCESS = 1
    FAILURE = 2
    END = 3


class ReactionKind(IntEnum):
    """What a reaction does."""

    SUBMIT = 1
    WEBHOOK = 2
    RETRY = 3


class ReactionState(IntEnum):
    """`PENDING` until it is done or given up."""

    PENDING = 1
    DONE = 2
    FAILED = 3


class TemplateRow(NamedTuple):
    """One version of a template; `removed_at` is None while it can be started."""

    namespace: str
    name: str
    version: int
    body: bytes  # the description, as JSON
    digest: str
    created_at: int
    created_by: str | None
    removed_at: int | None


class ScheduleRow(NamedTuple):
    """A schedule; `next_at` only rises while cron line, interval and zone stay the same.

    It has a cron line or an interval, never both. `last_slot` is the newest slot we have handled;
    nothing up to it runs again. `body` is what it starts, as JSON.
    """

    id: int
    namespace: str
    name: str
    cron: str | None
    every_ms: int | None
    zone: str
    overlap: str
    catch_up: str
    catch_up_limit: int
    paused: int
    next_at: int | None  # None if no further slot will come
    last_slot: int
    body: bytes
    created_at: int
    created_by: str | None
    updated_at: int


class RunRow(NamedTuple):
    """One run of a schedule; those started by hand have no `slot`."""

    id: int
    schedule: int
    slot: int | None
    state: int
    workflow: int | None  # once it is started
    created_at: int
    changed_at: int
    reason: str | None
    actor: str | None


class ReactionRow(NamedTuple):
    """One reaction to one end of a workflow's run; (workflow, run, trigger, place) is unique.

    `place` is its position among the reactions to that trigger, `outcome` the state in which the
    run ended, `result` the workflow that it submitted or retried, or the receiver's HTTP status.
    """

    id: int
    workflow: int
    run: int
    trigger: int
    place: int
    kind: int
    state: int
    tries: int
    next_at: int
    created_at: int
    finished_at: int | None
    outcome: int
    result: int | None
    message: str | None


class Due(NamedTuple):
    """Which slots of a schedule are due.

    `slots` are to run, in order. `missed_from` is the first slot that is skipped because it is too
    late, if any. `last` is the newest slot that has passed, `next_at` the one after it, if any.
    """

    slots: tuple[int, ...]
    missed_from: int | None
    last: int
    next_at: int | None


def timetable_of(row: ScheduleRow) -> Cron | Every:
    """Returns the timetable that computes a schedule's slots; intervals count from its creation."""
    if row.every_ms is not None:
        return Every(row.every_ms, row.created_at)
    return Cron(row.cron or "", row.zone)


def when_in_words(row: ScheduleRow) -> str:
    """Returns in words when a schedule is due: "Every 15 minutes, UTC", "Every 1h30m"."""
    if row.every_ms is not None:
        return f"Every {format_duration(row.every_ms)}"
    return in_words(row.cron or "", row.zone)


def look(row: ScheduleRow, now: int) -> Due:
    """Returns the slots of a schedule that are due by `now`, and those among them that run."""
    timetable = timetable_of(row)
    before = row.last_slot if row.next_at is None else max(row.next_at - 1, row.last_slot)
    catch_up = CatchUp(row.catch_up)
    wanted = row.catch_up_limit if catch_up is CatchUp.ALL else 1
    came = timetable.newest(before, now, wanted + 1)
    if not came:
        return Due((), None, row.last_slot, timetable.after(now))
    missed_at = now - min(LATE_MS, row.every_ms or LATE_MS)
    fresh = [slot for slot in came if slot > missed_at]
    late = [slot for slot in came if slot <= missed_at]
    if catch_up is CatchUp.NONE:
        late = []
    elif catch_up is CatchUp.LAST:
        late = [] if fresh else late[-1:]
    slots = (*late[-wanted:], *fresh)
    first = timetable.after(before)
    missed = None if slots and first is not None and first >= slots[0] else first
    return Due(slots, missed, came[-1], timetable.after(now))


def next_after(row: ScheduleRow, now: int) -> int | None:
    """Returns the next slot of a schedule that starts or resumes at this time, if any."""
    return timetable_of(row).after(max(now, row.last_slot))


class Decision(NamedTuple):
    """What happens to the oldest waiting run: `start`, `skip` with a reason, or wait.

    `cancel` lists workflows to cancel first.
    """

    start: bool = False
    skip: str | None = None
    cancel: tuple[int, ...] = ()


def decide(overlap: Overlap, waiting: int, running: tuple[int, ...]) -> Decision:
    """Decides about the oldest of `waiting` runs while these workflows are open."""
    if not running or overlap is Overlap.ALLOW:
        return Decision(start=True)
    if overlap is Overlap.SKIP:
        return Decision(skip=f"workflow {running[-1]} was still running")
    if overlap is Overlap.QUEUE:
        full = waiting > WAITING_LIMIT
        return Decision(skip=f"more than {WAITING_LIMIT} runs were waiting") if full else Decision()
    if waiting > 1:
        return Decision(skip="a later slot came before it could start")
    return Decision(cancel=running)


def triggers(state: WorkflowState) -> tuple[Trigger, ...]:
    """Returns the triggers that an end in this state fires."""
    if state is WorkflowState.COMPLETED:
        return (Trigger.SUCCESS, Trigger.END)
    if state is WorkflowState.FAILED:
        return (Trigger.FAILURE, Trigger.END)
    return (Trigger.END,)

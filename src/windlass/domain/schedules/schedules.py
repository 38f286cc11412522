"""Templates, schedules, runs and reactions: their rows, and what to do when.

Everything here is decided from rows and `now`; the engine reads and writes.
"""

from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.schedules.cron import Cron, in_words
from windlass.domain.schedules.interval import Every
from windlass.domain.values.quantities import format_duration

# A slot later than this, or than the slot after it, is missed; `catch_up` decides about it.
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

    It has a cron line or an interval, never both. `last_slot` is the newest slot we have handled:
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
    next_at: int | None  # None if no slot comes any more
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

    `place` is its position among those of its trigger. `outcome` is the state in which the run
    ended. `result` is the workflow it submitted or retried, or the status that the receiver
    answered with.
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

    `slots` are to run, in order. `missed_from` is the first slot that is skipped because it is
    too late, if there is one. `last` is the newest slot that has come, `next_at` the one after it,
    if there is one.
    """

    slots: tuple[int, ...]
    missed_from: int | None
    last: int
    next_at: int | None


def timetable_of(row: ScheduleRow) -> Cron | Every:
    """Returns what computes the slots of a schedule; intervals count from its creation."""
    if row.every_ms is not None:
        return Every(row.every_ms, row.created_at)
    return Cron(row.cron or "", row.zone)


def when_in_words(row: ScheduleRow) -> str:
    """Returns when a schedule comes due: "Every 15 minutes, UTC", "Every 1h30m"."""
    if row.every_ms is not None:
        return f"Every {format_duration(row.every_ms)}"
    return in_words(row.cron or "", row.zone)


def look(row: ScheduleRow, now: int) -> Due:
    """Returns the slots of a schedule that have come by `now`, and which of them run."""
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
    """Returns the next slot of a schedule that starts or resumes at this time, if one comes."""
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

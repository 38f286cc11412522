"""Sends alarms, and repeats failed ones in later runs, less and less often.

`alarms.json` lists the undelivered ones. A run takes what is due before it sends, so that two runs
do not send the same, and removes it once it has arrived. An alarm that is over is not repeated.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.alarms.sender import Alarm, Place, deliver, id_of, places_of
from windlass_fuzz.buckets.layout import state_key
from windlass_fuzz.config.alarm_settings import AlarmSettings
from windlass_fuzz.findings.markdown import one_line
from windlass_fuzz.state.documents import Health, struct_codec
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.state_file import StateFile

FIRST_PAUSE_MS: Final = 5 * 60_000  # doubles with each try
MAX_PAUSE_MS: Final = 6 * 3_600_000
KEPT_MS: Final = 7 * 86_400_000  # how long `status` shows alarms that were given up
MAX_COUNT: Final = 50
MAX_WHY: Final = 300


class Undelivered(msgspec.Struct, frozen=True, kw_only=True):
    """An alarm that has not reached a place; without `next_at_ms` it is no longer repeated."""

    place: Place
    alarm: Alarm
    tries: int
    why: str
    last_at_ms: int
    next_at_ms: int | None

    @property
    def id(self) -> str:
        return f"{self.place}-{id_of(self.alarm)}"


class Outbox(msgspec.Struct, frozen=True, kw_only=True):
    """`alarms.json`: the undelivered alarms, the oldest first."""

    undelivered: list[Undelivered] = []


async def send_alarm(
    pipeline: Pipeline, alarm: Alarm, settings: AlarmSettings, notify: Callable[[str], None]
) -> None:
    """Sends an alarm wherever the settings say; failures are reported, and repeated in later
    runs.
    """
    for place in places_of(settings):
        why = await deliver(place, alarm, settings, pipeline.runtime.clock)
        if why:
            notify(why)
            failed = failed_again(None, place, alarm, why, settings.tries, pipeline.now_ms())
            await _update(pipeline, lambda known, new=failed: _with(known, new), notify)  # type: ignore[misc]


async def repeat_alarms(
    pipeline: Pipeline, settings: AlarmSettings, notify: Callable[[str], None]
) -> None:
    """Sends again what is due; never stops a run."""
    try:
        if not (await outbox_file(pipeline).read()).undelivered:
            return
        for one in await _take_due(pipeline, settings):
            why = await deliver(one.place, one.alarm, settings, pipeline.runtime.clock)
            left: Undelivered | None = None
            if why:
                notify(why)
                tries, now = settings.tries, pipeline.now_ms()
                left = failed_again(one, one.place, one.alarm, why, tries, now)
            await _update(pipeline, lambda known, o=one, n=left: _with(known, n, o.id), notify)  # type: ignore[misc]
    except WindlassError as error:
        notify(f"alarms were not repeated: {error}")


async def _take_due(pipeline: Pipeline, settings: AlarmSettings) -> list[Undelivered]:
    """Returns the alarms that this run sends; other runs see them as already tried."""
    now = pipeline.now_ms()
    health = await pipeline.health.read()
    taken: list[Undelivered] = []

    def take(known: Outbox) -> Outbox:
        nonlocal taken
        kept = [one for one in known.undelivered if is_wanted(one, settings, health, now)]
        taken = [one for one in kept if one.next_at_ms is not None and one.next_at_ms <= now]
        postponed = {one.id: _postponed(one, now) for one in taken}
        return Outbox(undelivered=[postponed.get(one.id, one) for one in kept])

    await outbox_file(pipeline).update(take)
    return taken


def is_wanted(one: Undelivered, settings: AlarmSettings, health: Health, now_ms: int) -> bool:
    """Returns whether to keep it: its place is still set, and the alarm is not over.

    An alarm that is no longer repeated is kept for a while, so that `status` can show it.
    """
    if one.next_at_ms is None:
        return now_ms - one.last_at_ms < KEPT_MS
    sick = {*health.commits, *(key.partition("/")[0] for key in health.combinations)}
    return one.place in places_of(settings) and one.alarm.commit in sick


def failed_again(
    before: Undelivered | None, place: Place, alarm: Alarm, why: str, most: int, now_ms: int
) -> Undelivered:
    """Returns the record after another try: when to try again, unless there were too many."""
    tries = 1 if before is None else before.tries + 1
    return Undelivered(
        place=place, alarm=alarm, tries=tries, why=one_line(why)[:MAX_WHY], last_at_ms=now_ms,
        next_at_ms=None if tries >= most else now_ms + pause_ms(tries),
    )  # fmt: skip


def pause_ms(tries: int) -> int:
    """Returns how long to wait after this many tries."""
    return min(FIRST_PAUSE_MS << (tries - 1), MAX_PAUSE_MS)


def outbox_file(pipeline: Pipeline) -> StateFile[Outbox]:
    """Returns the file with the undelivered alarms."""
    key = state_key(pipeline.solver, OUTBOX.file)
    return StateFile(pipeline.bucket, key, OUTBOX, pipeline.runtime)


def _postponed(one: Undelivered, now_ms: int) -> Undelivered:
    return msgspec.structs.replace(one, next_at_ms=now_ms + pause_ms(one.tries + 1))


def _with(known: Outbox, new: Undelivered | None, instead_of: str = "") -> Outbox:
    gone = (instead_of, "" if new is None else new.id)
    rest = [one for one in known.undelivered if one.id not in gone]
    return Outbox(undelivered=[*rest, *([] if new is None else [new])][-MAX_COUNT:])


async def _update(
    pipeline: Pipeline, change: Callable[[Outbox], Outbox], notify: Callable[[str], None]
) -> None:
    try:
        await outbox_file(pipeline).update(change)
    except WindlassError as error:
        notify(f"the delivery of an alarm was not recorded: {error}")


OUTBOX: Final = struct_codec("alarms.json", Outbox, Outbox())

"""Notices that a database continues without commits that were answered, and acts on it.

A standby that took over, or a restored backup, may lack the last commits. Ids jump before anything
new gets one: that costs nothing, so it happens in every new timeline. Only a mark proves a loss: an
event that somebody was told about and that does not exist. Then a new epoch begins, as after `db
restored`, and requests for a lost id get the error `Lost`.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.gaps import Gap, Mark
from windlass.domain.values.errors import Lost, NotFound
from windlass.domain.values.quantities import format_moment
from windlass.engine.fleet.epochs import EPOCH, Restored, begin_epoch
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.store import Store

MARK_KEY: Final = ("mark_key_1", "mark_key_2")  # the key with which servers sign marks
KINDS: Final = ("job", "workflow")


class TimelineFollower:
    """Implements `Follower` for one engine."""

    def __init__(
        self, begin: Callable[[WriteTx], Work], refresh: Callable[[ReadTx], Awaitable[None]]
    ) -> None:
        self._begin = begin
        self._refresh = refresh
        self.since = 0  # when this engine first saw the database, by its clock

    async def follow(self, tx: WriteTx, marks: Sequence[Mark]) -> None:
        work = self._begin(tx)
        changed = await tx.catalog.follow_timeline()
        if changed is not None:
            await open_gap(work, *changed)
        if marks:
            await check_marks(work, marks)
        await work.settle()

    async def followed(self, tx: ReadTx) -> None:
        await self._refresh(tx)
        self.since = tx.now


async def restored(work: Work, actor: str, own_settings: bool = True) -> Restored:
    """Makes ids jump and begins an epoch, to replace what a backup does not have."""
    await open_gap(work, lost=True)
    for name in MARK_KEY:  # a copy must not trust the marks of the original
        await work.tx.catalog.set_meta(name, 0)
    return await begin_epoch(work, actor, own_settings)


async def open_gap(work: Work, before: int = 0, timeline: int = 0, lost: bool = False) -> Gap:
    """Makes all ids jump, and records where."""
    found = await work.tx.catalog.jump_ids(work.now)
    gap = found._replace(timeline_before=before, timeline=timeline, lost=int(lost))
    await work.tx.catalog.put_gap(gap)
    why = f"The database continued as timeline {timeline} after {before}:" if timeline else ""
    text = f"{why}ids continue after {gap.first}"
    at, kind = work.now, EventKind.LOOP
    await work.tx.log.jump(Event(gap.first, at, kind, 0, 0, 0, 0, 0, 0, text, None, None))
    return gap


async def check_marks(work: Work, marks: Sequence[Mark]) -> bool:
    """Begins an epoch if a mark proves a loss that is not known yet; returns whether it did.

    A mark of an epoch that the store does not know proves one, too.
    """
    epoch = max(mark.epoch for mark in marks)
    is_old = epoch > (await work.tx.catalog.meta()).get(EPOCH, 0)
    seq = await first_lost(work.tx, marks)
    if seq is None and not is_old:
        return False
    gaps = await work.tx.catalog.gaps()
    gap = next((one for one in gaps if seq is not None and seq < one.first), None)
    if gap is None:
        gap = await open_gap(work)
    if gap.lost and not is_old:
        return False
    await work.tx.catalog.put_gap(gap._replace(lost=1))
    what = f"epoch {epoch}" if seq is None else f"event {seq} among them"
    why = f"{_of(gap)} lost commits that had been answered, {what}"
    await begin_epoch(work, None, why=why, above=epoch)
    return True


async def first_lost(tx: ReadTx, marks: Sequence[Mark]) -> int | None:
    """Returns the first of these events that does not exist, and that retention did not remove."""
    if not marks:
        return None
    times = await tx.log.times(sorted({mark.seq for mark in marks}))
    oldest = min(times, default=0)
    lost = [m.seq for m in marks if times.get(m.seq) != m.at and m.seq > oldest]
    return min(lost, default=None)


async def explain_missing(store: Store, error: NotFound) -> NotFound:
    """Returns why a job or workflow does not exist: `Lost` if a loss took it, else the error."""
    if error.kind not in KINDS or not isinstance(error.id, int):
        return error
    gaps = await store.read(lambda tx: tx.catalog.gaps())
    gap = _gap_of(gaps, error.kind, error.id)
    if gap is None:
        return error
    message = (
        f"{error.kind} {error.id} was lost: {_of(gap)} at {format_moment(gap.at)} lost "
        f"everything after {error.kind} {_last(gap, error.kind)}; submit it again"
    )
    return Lost(error.kind, error.id, message)


async def known_losses(tx: ReadTx) -> list[Gap]:
    """Returns the gaps in which commits were lost, the newest first."""
    return [gap for gap in reversed(await tx.catalog.gaps()) if gap.lost]


def describe(gap: Gap) -> str:
    """Returns one sentence about a loss."""
    return (
        f"{_of(gap).capitalize()} at {format_moment(gap.at)} lost commits: jobs that were "
        f"submitted after job {gap.last_job}, and what happened to older ones in that time"
    )


def _gap_of(gaps: Iterable[Gap], kind: str, number: int) -> Gap | None:
    """Returns the gap that took this id."""
    first = next((gap for gap in gaps if number <= gap.first), None)
    lost = first is not None and first.lost and first.has(_last(first, kind), number)
    return first if lost else None


def _last(gap: Gap, kind: str) -> int:
    return gap.last_job if kind == "job" else gap.last_workflow


def _of(gap: Gap) -> str:
    if gap.timeline:
        return f"the failover from timeline {gap.timeline_before} to {gap.timeline}"
    return "the restore"

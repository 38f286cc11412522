"""Notices that a database lacks commits that were answered, and starts a new epoch.

A standby that took over, or a restored backup, may lack the last commits; workers have not lost
them. In a new epoch nothing older counts as current: attempts and incarnations continue with
numbers that were never used, and a worker that reports an older one is told to stop. No job is
assigned until all workers of the old epoch have ended their jobs.

Ids jump before anything new gets one: that costs nothing, so it happens in every new timeline. Only
a mark proves a loss: an event that somebody was told about and that does not exist. Then a new
epoch begins, as after `db restored`, and requests for a lost id get the error `Lost`.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

from windlass.domain.config import Config
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.gaps import Gap, Mark
from windlass.domain.rows.records import Worker
from windlass.domain.values.errors import Conflict, Lost, NotFound
from windlass.domain.values.ids import PER_EPOCH
from windlass.domain.values.quantities import format_moment
from windlass.engine.transaction.arguments import MAX_COUNT
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.catalog import BACKUP
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.store import Store

EPOCH: Final = "epoch"
LAST_EPOCH: Final = MAX_COUNT // PER_EPOCH - 1  # stores keep no higher attempt numbers
HOLD: Final = "hold_until"
HOLD_MS: Final = "hold_ms"  # duration of that, by the settings of the server that started last
RETRY_MS: Final = 10_000
MARK_KEY: Final = ("mark_key_1", "mark_key_2")  # the key with which servers sign marks
KINDS: Final = ("job", "workflow")


class Restored(NamedTuple):
    """The new epoch, and when jobs are assigned again (ms)."""

    epoch: int
    hold_until: int


async def note_settings(work: Work) -> None:
    """Stores how long workers of this server may run jobs without it, for `begin_epoch`."""
    meta = await work.tx.catalog.meta()
    if meta.get(HOLD_MS) != _hold_ms(work.config):
        await work.tx.catalog.set_meta(HOLD_MS, _hold_ms(work.config))


async def begin_epoch(
    work: Work,
    actor: str | None,
    own_settings: bool = True,
    why: str = "a backup was restored",
    above: int = 0,
) -> Restored:
    """Raises the epoch; returns it, and when workers have ended the jobs of the old one.

    Without `own_settings`, that time follows the server that started last. The new epoch is `above`
    another known one.
    """
    meta = await work.tx.catalog.meta()
    epoch = max(meta.get(EPOCH, 0), above) + 1
    own = _hold_ms(work.config)
    hold_until = work.now + (own if own_settings else meta.get(HOLD_MS, own))
    await work.tx.catalog.set_meta(EPOCH, epoch)
    await work.tx.catalog.set_meta(HOLD, hold_until)
    if meta.get(BACKUP):
        await work.tx.catalog.set_meta(BACKUP, 0)
    work.effects.catalog = True
    work.say(
        EventKind.LOOP, f"Epoch {epoch} began: {why}", actor=actor,
        data={"epoch": epoch, "hold_until": hold_until},
    )  # fmt: skip
    return Restored(epoch, hold_until)


def _hold_ms(config: Config) -> int:
    return config.heartbeat_timeout_ms + config.term_grace_ms


def first_incarnation(work: Work) -> int:
    """Returns the lowest incarnation number of this epoch."""
    return work.catalog.epoch * PER_EPOCH + 1


def refuse_old_store(work: Work, worker: Worker, seen: int) -> Conflict:
    """Returns the error for a worker that claims to know a newer epoch.

    The claim alone has no other effect: proof is a mark that a server signed (`Marks`).
    """
    catalog = work.catalog
    message = (
        f"worker {worker.name} has seen epoch {seen}, the store is at {catalog.epoch}: it was "
        "restored from an old backup. Stop its servers, run windlass db restored, start them again"
    )
    if seen > catalog.claimed_epoch and worker.status != WorkerStatus.PENDING_APPROVAL:
        catalog.claimed_epoch = seen
        work.say(EventKind.LOOP, message, worker=worker.id)
    return Conflict("old_epoch", message, RETRY_MS)


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

"""Starts a new epoch after a backup was restored, so that nothing older counts as current.

The store has lost everything after the backup; workers have not. Attempts and incarnations continue
with numbers that were never used, and a worker that reports an older one is told to stop. No job is
assigned until all workers of the old epoch have ended their jobs.
"""

from typing import Final, NamedTuple

from windlass.domain.config import Config
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import Worker
from windlass.domain.values.errors import Conflict
from windlass.domain.values.ids import PER_EPOCH
from windlass.engine.transaction.arguments import MAX_COUNT
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.catalog import BACKUP

EPOCH: Final = "epoch"
LAST_EPOCH: Final = MAX_COUNT // PER_EPOCH - 1  # stores keep no higher attempt numbers
HOLD: Final = "hold_until"
HOLD_MS: Final = "hold_ms"  # duration of that, by the settings of the server that started last
RETRY_MS: Final = 10_000


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

"""After a backup was restored: a new epoch, so that nothing from before is taken for current.

The store has forgotten what happened after its backup was made, workers have not. Attempts and
incarnations go on from numbers that were never given, whoever speaks under an older one is told
to stop, and nothing is given out before every worker that was cut off has ended its jobs.
"""

from typing import Final, NamedTuple

from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import Worker
from windlass.domain.values.errors import Conflict
from windlass.engine.transaction.unit_of_work import Work

EPOCH: Final = "epoch"
HOLD: Final = "hold_until"
RETRY_MS: Final = 10_000


class Restored(NamedTuple):
    """The epoch that has begun, and when jobs are given out again (ms)."""

    epoch: int
    hold_until: int


async def begin_epoch(work: Work, actor: str | None) -> Restored:
    """Raises the epoch. Until jobs are given out again, workers have ended those of the old one."""
    meta = await work.tx.catalog.meta()
    epoch = max(meta.get(EPOCH, 0), work.catalog.seen_epoch) + 1
    hold_until = work.now + work.config.heartbeat_timeout_ms + work.config.term_grace_ms
    await work.tx.catalog.set_meta(EPOCH, epoch)
    await work.tx.catalog.set_meta(HOLD, hold_until)
    work.effects.catalog = True
    work.say(EventKind.LOOP, f"Epoch {epoch} began: a backup was restored", actor=actor)
    return Restored(epoch, hold_until)


def first_incarnation(work: Work) -> int:
    """Returns the lowest incarnation number of this epoch."""
    return work.catalog.epoch * work.config.epoch_attempts + 1


def refuse_old_store(work: Work, worker: Worker, seen: int) -> Conflict:
    """Refuses a worker that knows a newer epoch; from now on nothing is given out."""
    catalog = work.catalog
    message = (
        f"worker {worker.name} has seen epoch {seen}, the store is at {catalog.epoch}: it was "
        "restored from an old backup. Stop its servers, run windlass db restored, start them again"
    )
    if seen > catalog.seen_epoch:
        catalog.seen_epoch = seen
        work.say(EventKind.LOOP, message, worker=worker.id)
    return Conflict("old_epoch", message, RETRY_MS)

"""Records activity of running jobs: it moves `last_activity_at`, and with it the deadline."""

from collections.abc import Sequence
from typing import NamedTuple

from windlass.domain.lifecycle.states import State
from windlass.engine.attempts.reports import run_deadline
from windlass.engine.transaction.unit_of_work import Work

RUNNING = State.RUNNING.code


class Activity(NamedTuple):
    """Log bytes or progress came in for this attempt."""

    worker: int
    incarnation: int
    job: int
    attempt: int


async def note_activity(work: Work, signs: Sequence[Activity]) -> list[bool]:
    """Records activity; returns for each attempt whether the worker still holds it."""
    leases = await work.tx.leases.lock(sorted({sign.job for sign in signs}))
    touched: dict[int, tuple[int, int, int | None]] = {}
    held: list[bool] = []
    for sign in signs:
        lease = leases.get(sign.job)
        mine = lease is not None and (lease.worker, lease.incarnation, lease.attempt) == (
            sign.worker,
            sign.incarnation,
            sign.attempt,
        )
        held.append(mine)
        if mine and lease is not None and lease.state == RUNNING:
            deadline = run_deadline(work, lease, lease.known_start, work.now)
            touched[lease.job] = (lease.job, work.now, deadline)
    if touched:
        await work.tx.leases.touch(list(touched.values()))
    return held

"""The steps in the life of a pool's worker, with their events."""

from typing import Final

from windlass.domain.pools.pools import Lifecycle, Pool, PoolRow, PoolWorkerRow
from windlass.domain.pools.sizing import after_failure
from windlass.domain.rows.events import EventKind
from windlass.engine.transaction.unit_of_work import Work

ACTOR: Final = "pools"


def move(
    work: Work, row: PoolRow, member: PoolWorkerRow, state: Lifecycle, why: str | None
) -> PoolWorkerRow:
    """Moves a worker to its next state, with an event."""
    text = f"Worker {member.token} of pool {row.name} is {state.name.lower()}"
    say(work, row, f"{text}: {why}" if why else text, token=member.token, state=state.name.lower())
    tries = 0 if state != Lifecycle.REQUESTED else member.tries
    return member._replace(
        state=int(state), changed_at=work.now, reason=why, idle_since=None, tries=tries
    )


def failed(work: Work, row: PoolRow, pool: Pool, why: str) -> PoolRow:
    """Records a failed launch; the wait before the next grows with each failure."""
    failures = row.failures + 1
    say(work, row, f"Pool {row.name}: {why}", failures=failures)
    return row._replace(
        failures=failures, next_at=after_failure(pool, failures, work.now), message=why[:500]
    )


def say(work: Work, row: PoolRow, reason: str, **data: object) -> None:
    """Adds an event about a pool."""
    work.say(EventKind.POOL, reason, actor=ACTOR, data={"pool": row.name, **data})

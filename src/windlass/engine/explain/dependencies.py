"""Finds what blocked jobs wait for: follows dependencies until a job has another reason."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.job.job import decode_spec
from windlass.domain.rows.records import JobFacts, Wait
from windlass.engine.jobs.supersede import newest_of
from windlass.store.sql.transaction import ReadTx

DEPTH: Final = 50  # maximum jobs followed in a row


class Blocked(NamedTuple):
    """A blocked job: the unfinished jobs it waits for, and whether it waits for an operator too."""

    needs: tuple[JobFacts, ...]
    manual: bool


async def what_blocks(tx: ReadTx, job: int) -> Blocked:
    """Returns what this job, which is in `waits`, waits for."""
    wait = (await tx.places.waits([job])).get(job)
    body = (await tx.jobs.specs([job])).get(job)
    if body is None:
        return Blocked((), False)
    spec = decode_spec(body)
    named = [ref for ref in (*spec.after, *spec.after_any) if isinstance(ref, int)]
    newest = await newest_of(tx, named)
    needs = {fact.id: fact for fact in newest.values() if fact.is_open}
    return Blocked(tuple(needs[job] for job in sorted(needs)), wait is not None and _asks(wait))


async def way_to_root(tx: ReadTx, job: int) -> list[int]:
    """Returns the path from this open job to the root cause: the first not blocked by another."""
    way = [job]
    while len(way) < DEPTH:
        if not await _blocked_among(tx, way[-1:]):
            return way
        needs = [fact.id for fact in (await what_blocks(tx, way[-1])).needs]
        if not needs:
            return way
        blocked = await _blocked_among(tx, needs)
        free = [need for need in needs if need not in blocked]
        way.append(free[0] if free else needs[0])
    return way


async def _blocked_among(tx: ReadTx, jobs: Sequence[int]) -> set[int]:
    """Returns the open jobs among these that are blocked and not running."""
    waits = await tx.places.waits(jobs)
    return {job for job, wait in waits.items() if not wait.is_running}


def _asks(wait: Wait) -> bool:
    return wait.needs_operator

"""Rejects jobs that no worker could ever run, after a grace period; decided per shape.

All enrolled workers count, also those that are away, drained or disabled, with the best they
reported within a week. So a job is refused for what the fleet lacks, never for what is only missing
at the moment. If there are no workers, nothing is rejected, unless a job asks to be rejected at
once.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.job.forms import NEVER, Duration, milliseconds
from windlass.domain.job.validation import ValidatedJob
from windlass.domain.lifecycle.states import QUEUED, REJECTED
from windlass.domain.matching.functions import START as FUNCTIONS
from windlass.domain.matching.functions import with_functions_of
from windlass.domain.matching.matching import Mismatch, metadata_digest, metadata_of
from windlass.domain.matching.shapes import Shape, shape_mismatches
from windlass.domain.matching.workers import PastMetadata
from windlass.domain.pools.pools import PoolState, Template, template_of
from windlass.domain.rows.records import JobFacts, Worker
from windlass.domain.values.ids import WorkerId
from windlass.engine.jobs.close import end_without_attempt
from windlass.engine.jobs.dependents import hold_waits, jobs_ended
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.transaction import ReadTx

REMEMBERED_MS: Final = 7 * 86_400_000
MISMATCH: Final = "capability_mismatch"


class Fleet(NamedTuple):
    """All distinct metadata that counts, how many workers have it, and the pools."""

    profiles: tuple[Mapping[str, object], ...]
    workers: int
    pools: tuple[Template, ...] = ()


class _Grace(msgspec.Struct, frozen=True):
    """The field of a stored spec that says how long the job waits for a capable worker."""

    capability_grace: Duration | None = None


_encode = msgspec.json.Encoder(order="deterministic").encode
_grace = msgspec.json.Decoder(_Grace).decode


async def read_fleet(tx: ReadTx) -> Fleet:
    """Reads the metadata of all enrolled workers within the last week, and the pools."""
    workers = await tx.workers.all()
    known = {worker.id: worker for worker in workers}
    reported = {(worker.static, worker.dynamic): None for worker in workers}
    for row in await tx.workers.past(tx.now - REMEMBERED_MS):
        if row.worker in known:
            now = known[WorkerId(row.worker)]
            reported[now.static, as_reported(row.dynamic, now.dynamic)] = None
    profiles = tuple(metadata_of(static, dynamic) for static, dynamic in reported)
    return Fleet(profiles, len(workers), await read_templates(tx))


def as_reported(past: str, now: str) -> str:
    """Returns past metadata of a worker, with its current report about functions.

    A function that a worker has not tried to import proves nothing, and code changes more often
    than machines.
    """
    if FUNCTIONS not in past and FUNCTIONS not in now:
        return past
    decode = msgspec.json.decode
    return _encode(with_functions_of(decode(past), decode(now))).decode()


async def read_templates(tx: ReadTx) -> tuple[Template, ...]:
    """Returns the expected metadata of the workers of pools, including disabled pools."""
    return tuple(template_of(row) for row in await tx.pools.all() if row.state == PoolState.ACTIVE)


async def note_past(work: Work, old: Worker, new: Worker) -> None:
    """Records the old metadata of a worker that reports something new."""
    if old.dynamic == new.dynamic or as_reported(old.dynamic, new.dynamic) == new.dynamic:
        return
    digest = metadata_digest(msgspec.json.decode(old.dynamic))
    row = PastMetadata(old.id, digest, work.now, old.dynamic)
    await work.tx.workers.note_past(row, work.now - REMEMBERED_MS)


def grace_ms(own: Duration | None, configured: int | None) -> int | None:
    """Returns how long a job that no worker can run waits, in milliseconds; None: for ever."""
    if own is None:
        return configured
    return None if own == NEVER else milliseconds(own)


def nearest(shape: Shape, fleet: Iterable[Mapping[str, object]]) -> tuple[Mismatch, ...] | None:
    """Returns what the closest match of all workers lacks for this shape; () if one can run it.

    Returns None if there is no worker to judge by.
    """
    best: tuple[Mismatch, ...] | None = None
    for metadata in fleet:
        found = tuple(shape_mismatches(shape, metadata))
        if best is None or len(found) < len(best):
            best = found
        if not found:
            return ()
    return best


def describe(best: tuple[Mismatch, ...] | None, workers: int) -> str:
    """Returns why no worker can run it, as the reason of the rejection."""
    if best is None:
        return f"{MISMATCH}: no worker is known"
    among = (
        "the only known worker" if workers == 1 else f"the closest match of {workers} known workers"
    )
    return f"{MISMATCH}: {among}: {'; '.join(mismatch.text for mismatch in best)}"


class Verdicts:
    """Which shapes no worker can run; cached as long as the fleet stays the same."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._reasons: dict[int, str | None] = {}

    def reason(self, number: int, shape: Shape) -> str | None:
        """Returns why no worker can run jobs of this shape; None if one can."""
        if number not in self._reasons:
            self._reasons[number] = self._judge(shape)
        return self._reasons[number]

    def _judge(self, shape: Shape) -> str | None:
        if any(pool.could_run(shape) for pool in self.fleet.pools):
            return None
        best = nearest(shape, self.fleet.profiles)
        return None if best == () else describe(best, self.fleet.workers)


class Impossible(NamedTuple):
    """A shape that no worker can run: why, since when, and whether there are any workers."""

    reason: str
    since: int
    anybody: bool


async def reject_late(work: Work, jobs: Sequence[int], why: Mapping[int, Impossible]) -> int:
    """Rejects the jobs among these whose grace is over; `why` is by shape. Returns how many."""
    facts = await work.tx.jobs.lock(sorted(jobs))
    await work.catalog.know(work.tx, {fact.shape for fact in facts.values()})
    specs = await work.tx.jobs.specs(sorted(facts))
    late = [
        fact
        for fact in facts.values()
        if fact.is_open and _is_over(work, fact, specs[fact.id], why.get(fact.shape))
    ]
    return await _reject(work, late, why) if late else 0


def asks_at_once(jobs: Sequence[ValidatedJob]) -> bool:
    """Returns True if one of these jobs asks to be rejected rather than wait."""
    return any(not job.template.only_named and job.spec.capability_grace == 0 for job in jobs)


async def reject_at_once(work: Work, jobs: Sequence[int]) -> int:
    """Rejects new jobs without a grace period that no worker can run."""
    for start in range(0, len(jobs), work.config.chunk_rows):
        await _reject_at_once(work, jobs[start : start + work.config.chunk_rows])
    return len(jobs)


async def _reject_at_once(work: Work, jobs: Sequence[int]) -> None:
    facts = await work.tx.jobs.read(sorted(jobs))
    shapes = {fact.shape for fact in facts.values()}
    await work.catalog.know(work.tx, shapes)
    verdicts = Verdicts(await read_fleet(work.tx))
    known = [(number, work.catalog.shapes[number]) for number in sorted(shapes)]
    why = impossible(known, verdicts, {}, 0)
    if why:
        await reject_late(work, [j for j, fact in facts.items() if fact.shape in why], why)


def _is_over(work: Work, fact: JobFacts, spec: bytes, why: Impossible | None) -> bool:
    if why is None:
        return False
    own = _grace(spec).capability_grace
    grace = grace_ms(own, work.config.capability_grace_ms)
    if grace is None or (not why.anybody and own != 0):
        return False
    return work.now - max(fact.created_at, fact.age_from, why.since) >= grace


async def _reject(work: Work, facts: Sequence[JobFacts], why: Mapping[int, Impossible]) -> int:
    """Rejects only jobs that are queued now: the fleet may have changed for a waiting job."""
    await hold_waits(work, (), [fact.id for fact in facts])
    limited = [fact for fact in facts if fact.limit]
    parked = await work.tx.places.take_parked(limited) if limited else []
    gone = {ticket.job for ticket in parked}
    ready = await work.tx.places.take_ready([fact for fact in facts if fact.id not in gone])
    found = {ticket.job: ticket for ticket in (*parked, *ready)}
    rejected = [fact for fact in facts if fact.id in found]
    ends = []
    for fact in rejected:
        reason = why[fact.shape].reason
        attempt = found[fact.id].attempt
        work.move(fact.id, fact.shape, fact.workflow, attempt, QUEUED, REJECTED, reason)
        ended = fact._replace(attempt=attempt)
        ends.append(end_without_attempt(ended, REJECTED, work.now, reason))
    await work.tx.jobs.end(ends)
    await jobs_ended(work, rejected, ends)
    work.effects.ended += [end.job for end in ends]
    for ticket in ready:
        if ticket.limit:
            work.slots.refill(ticket.limit)
    return len(rejected)


def impossible(
    shapes: Iterable[tuple[int, Shape]], verdicts: Verdicts, since: Mapping[int, int], now: int
) -> dict[int, Impossible]:
    """Returns which of the shapes no worker can run."""
    anybody = verdicts.fleet.workers > 0 or bool(verdicts.fleet.pools)
    found = ((number, verdicts.reason(number, shape)) for number, shape in shapes)
    return {
        number: Impossible(reason, since.get(number, now), anybody)
        for number, reason in found
        if reason is not None
    }

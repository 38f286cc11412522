"""Estimates how long waiting and running jobs will take, outside of decisions."""

from collections.abc import Sequence
from typing import Final

from windlass.engine.history.statistics import Kinds
from windlass.engine.pools.targets import WaitingWork
from windlass.engine.transaction.catalog import Catalog
from windlass.store.sql.pools import HeldJob
from windlass.store.sql.transaction import ReadTx

SAMPLE: Final = 200  # jobs from each end of a shape that represent all of them
HELD_AT_ONCE: Final = 1_000


async def survey_waiting(tx: ReadTx, catalog: Catalog, shape: int) -> WaitingWork:
    """Returns the expected work of a shape's ready jobs, and since when the first of them waits."""
    sample = await tx.views.ready_sample(shape, SAMPLE)
    kinds = Kinds(tx, catalog)
    await kinds.learn((shape, job.spec) for job in sample)
    known = [found for job in sample if (found := kinds.of(shape, job.spec)) is not None]
    since = min((job.since for job in sample if job.since is not None), default=None)
    if not known:
        return WaitingWork(since=since)
    mean = sum(found.mean_ms for found in known) / len(known)
    return WaitingWork(mean, len(known) / len(sample), since)


async def survey_running(tx: ReadTx, catalog: Catalog, held: Sequence[HeldJob]) -> dict[int, int]:
    """Returns the expected run times of these jobs, as far as their kinds are known."""
    specs = await tx.jobs.specs([one.job for one in held])
    kinds = Kinds(tx, catalog)
    jobs = [(one.job, one.shape, specs[one.job]) for one in held if one.job in specs]
    await kinds.learn((shape, spec) for _, shape, spec in jobs)
    found = ((job, kinds.of(shape, spec)) for job, shape, spec in jobs)
    return {job: max(1, round(known.mean_ms)) for job, known in found if known is not None}

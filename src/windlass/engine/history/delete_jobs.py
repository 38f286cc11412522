"""Deletes single ended jobs at once, as retention later does by itself."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.values.errors import Overloaded
from windlass.domain.values.quantities import counted
from windlass.engine.history.retention import needed_jobs, outside_open_workflows, remove_rows
from windlass.engine.history.series import note_shapes
from windlass.engine.transaction.unit_of_work import Work

AGAIN_MS: Final = 1_000  # while another server is removing old jobs


class Deleted(NamedTuple):
    """Whether a job was deleted, or why not. A job that does not exist is not a refusal."""

    job: int
    applied: bool
    refusal: str | None = None


async def delete_jobs(work: Work, jobs: Sequence[int], actor: str | None) -> list[Deleted]:
    """Deletes those of these jobs that have ended and that nothing needs any more.

    Their logs and artifacts go with them; the next round of retention that looks for orphaned files
    removes the files.
    """
    if not await work.tx.retention.try_lock():
        raise Overloaded(AGAIN_MS)
    facts = await work.tx.jobs.lock(sorted(set(jobs)))
    ended = {job: fact for job, fact in facts.items() if not fact.is_open}
    needed = await needed_jobs(work, list(ended))
    free = {job: fact for job, fact in ended.items() if job not in needed}
    gone = await outside_open_workflows(work, free)
    await note_shapes(work, gone)
    await remove_rows(work, gone, f"Deleted {counted(len(gone), 'job')}", actor or "operator")

    def answer(job: int) -> Deleted:
        if job in gone:
            return Deleted(job, True)
        if job not in facts:
            return Deleted(job, False)
        if job not in ended:
            return Deleted(job, False, "it has not ended: cancel it first")
        if job in needed:
            return Deleted(job, False, "an open job depends on it, or a name points to it")
        return Deleted(job, False, "its workflow has not ended")

    return [answer(job) for job in jobs]

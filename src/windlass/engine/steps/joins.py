"""Ends the waits of functions for jobs that they have submitted.

Retries are followed: the newest successor of a job counts. A commit that ends such a job starts
`end_joins` for its waiters; the scheduling loop finds what was missed.
"""

from collections.abc import Sequence

import msgspec

from windlass.domain.job.job import decode_spec
from windlass.domain.rows.records import JobFacts
from windlass.domain.rows.steps import StepKind, StepRow, StepState
from windlass.domain.values.errors import InvalidInput
from windlass.engine.steps.resume import resume
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.transaction import ReadTx

_encode = msgspec.json.Encoder().encode


async def check_children(tx: ReadTx, row: StepRow) -> None:
    """Raises `InvalidInput` if a step waits for a job that its own job has not submitted."""
    parent, jobs = row.job, row.jobs
    specs = await tx.jobs.specs(sorted(set(jobs)))
    for job in jobs:
        if job not in specs or decode_spec(specs[job]).parent != parent:
            raise InvalidInput("jobs", f"jobs that job {parent} has submitted", job)


async def look_at_children(tx: ReadTx, row: StepRow) -> StepRow:
    """Returns the step of a wait for jobs; it is done, with their newest ids, if all have ended."""
    jobs = row.jobs
    newest = await _newest(tx, jobs)
    found = [newest[job] for job in jobs]
    if any(facts is not None and facts.is_open for facts in found):
        return row
    ids = [job if facts is None else facts.id for job, facts in zip(jobs, found, strict=True)]
    return row._replace(state=int(StepState.DONE), ended_at=tx.now, value=_encode(ids))


async def end_joins(work: Work, parents: Sequence[int]) -> int:
    """Continues those of these jobs whose children have ended; returns how many."""
    await work.tx.jobs.lock(sorted(parents))
    ended: list[StepRow] = []
    for row in await work.tx.steps.lock_pending(sorted(parents)):
        if row.kind == StepKind.JOBS:
            row = await look_at_children(work.tx, row)
            if row.state == StepState.DONE:
                await work.tx.steps.put(row)
                ended.append(row)
    return await resume(work, ended, "The jobs it waits for have ended", None)


async def overdue_joins(tx: ReadTx, after: int, count: int) -> tuple[list[int], int]:
    """Returns jobs above an id whose children have ended, and the last job it checked.

    The second is 0 if there are no more.
    """
    rows = await tx.steps.joining(after, count)
    parents = [row.job for row in rows if (await look_at_children(tx, row)).state == StepState.DONE]
    return parents, rows[-1].job if len(rows) == count else 0


async def _newest(tx: ReadTx, jobs: Sequence[int]) -> dict[int, JobFacts | None]:
    """Returns the newest successor of each of these jobs; None for one that was removed."""
    newest: dict[int, JobFacts | None] = {}
    current = {job: job for job in jobs}
    while current:
        facts = await tx.jobs.read(sorted(set(current.values())))
        following: dict[int, int] = {}
        for job, number in current.items():
            found = facts.get(number)
            if found is not None and found.superseded_by is not None:
                following[job] = found.superseded_by
            else:
                newest[job] = found
        current = following
    return newest

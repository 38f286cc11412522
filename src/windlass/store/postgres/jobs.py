"""Rows of `jobs` in bulk, and the lists of jobs that wait for a job.

A list is packed edges, 1,000 to a chunk. Submits that name the same job hold it `FOR SHARE` only,
so several may append to one list at once. Chunk 0 is the lock: whoever inserts it first, or locks
it, appends; the others wait.
"""

from collections.abc import Iterator, Mapping, Sequence

from windlass.domain.rows.records import JobColumns, JobEnd, KeyRow
from windlass.store.postgres.session import Session, integers, spread
from windlass.store.sql.jobs import Jobs


class PostgresJobs(Jobs):
    """Implements `Jobs` on PostgreSQL."""

    __slots__ = ()
    _session: Session

    async def insert(self, rows: Sequence[JobColumns]) -> None:
        if rows:
            ids, *columns, specs = zip(*rows, strict=True)
            await self._session.execute(
                "insert_jobs", integers(ids), specs, *spread("iiiiiiiiiiii", columns)
            )

    async def end(self, rows: Sequence[JobEnd]) -> None:
        if rows:
            ids, *columns = zip(*rows, strict=True)
            await self._session.execute(
                "end_jobs", integers(ids), *spread("iiiiiiiiiiiiooo", columns)
            )

    async def add_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        await _append(self._session, edges)

    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        await _append(self._session, edges)

    async def claim_keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        found = await super().claim_keys(rows)
        jobs = {row.job for row in rows}
        self._session.vouches |= any(row.job not in jobs for row in found.values())
        return found


CHUNK = 1_000


async def _append(session: Session, edges: Mapping[int, Sequence[int]]) -> None:
    """Appends to each list; usually there is none yet, and one statement is enough."""
    jobs = sorted(job for job, more in edges.items() if more)
    if not jobs:
        return
    edges = {job: list(edges[job]) for job in jobs}
    firsts = [integers(edges[job][:CHUNK]) for job in jobs]
    rows = await session.fetch("start_dependents", integers(jobs), firsts)
    started = {row[0] for row in rows}
    chunks = [
        chunk
        for job in jobs
        if job in started and len(edges[job]) > CHUNK
        for chunk in _split(job, 1, 0, edges[job][CHUNK:])
    ]
    known = [job for job in jobs if job not in started]
    if known:
        chunks += await _continue(session, known, edges)
    if chunks:
        numbers, places, parts = zip(*chunks, strict=True)
        await session.execute("append_dependents", integers(numbers), integers(places), parts)


async def _continue(
    session: Session, jobs: Sequence[int], edges: Mapping[int, Sequence[int]]
) -> list[tuple[int, int, str]]:
    """Locks existing lists, and divides the new edges into what fills their last chunks and what
    follows.
    """
    await session.fetch("lock_dependents", integers(jobs))
    ends = await session.fetch("dependents_ends", integers(jobs))
    return [chunk for job, last, length in ends for chunk in _split(job, last, length, edges[job])]


def _split(
    job: int, chunk: int, length: int, edges: Sequence[int]
) -> Iterator[tuple[int, int, str]]:
    """Yields the rest of chunk number `chunk`, which holds `length` edges, and then further
    chunks.
    """
    start = 0
    while start < len(edges):
        end = start + CHUNK - length
        if end > start:
            yield job, chunk, integers(edges[start:end])
        start, chunk, length = end, chunk + 1, 0

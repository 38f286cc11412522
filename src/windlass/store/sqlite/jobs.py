"""Lists of dependents as SQLite keeps them: packed edges, 1,000 to a chunk."""

from collections.abc import Mapping, Sequence

from windlass.store.sql.jobs import Jobs
from windlass.store.sqlite.rows import pack, unpack

CHUNK = 1_000


class SqliteJobs(Jobs):
    """Implements `Jobs` on SQLite."""

    __slots__ = ()

    async def add_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        rows: list[tuple[int, int, bytes]] = []
        for job, more in edges.items():
            if more:
                rows += await self._filled_chunks(job, more)
        await self._session.many("put_dependents", "iio", rows)

    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        rows: list[tuple[int, int, bytes]] = []
        for job, its in edges.items():
            if 0 < len(its) <= CHUNK:  # nearly always
                rows.append((job, 0, pack(its)))
            else:
                rows += _chunks(job, 0, its)
        await self._session.many("put_dependents", "iio", rows)

    async def _filled_chunks(self, job: int, more: Sequence[int]) -> list[tuple[int, int, bytes]]:
        """Returns the job's last chunk filled up, and those that follow it."""
        last = await self._session.fetch("last_dependents", job)
        number, edges = (last[0][0], unpack(last[0][1])) if last else (0, ())
        edges += tuple(more)
        return _chunks(job, number, edges)


def _chunks(job: int, first: int, edges: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """Returns the rows of these edges, from chunk number `first` on."""
    return [
        (job, first + start // CHUNK, pack(edges[start : start + CHUNK]))
        for start in range(0, len(edges), CHUNK)
    ]

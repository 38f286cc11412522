"""Rows of `jobs` as PostgreSQL takes them in bulk. Edges are in dependents.py."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import JobColumns, JobEnd, KeyRow
from windlass.store.postgres import dependents
from windlass.store.postgres.columns import integers, spread
from windlass.store.postgres.session import Session
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
        await dependents.append(self._session, edges)

    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        await dependents.append(self._session, edges)

    async def claim_keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        found = await super().claim_keys(rows)
        jobs = {row.job for row in rows}
        self._session.vouches |= any(row.job not in jobs for row in found.values())
        return found

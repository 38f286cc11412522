"""Rows of `jobs`, their attempts, dependents and keys."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.domain.rows.records import (
    Attempt,
    JobColumns,
    JobEnd,
    JobFacts,
    JobRecord,
    JobTry,
    KeyRow,
)
from windlass.store.spans import as_key, spans_text
from windlass.store.sql.session import Role, maker

FACTS: Final = len(JobFacts._fields)


class Jobs(Role):
    """`JobsWrite`, but for what is added to lists of dependents."""

    __slots__ = ()

    async def allocate(self, count: int) -> Sequence[int]:
        return await self._session.numbers("job_numbers", count)

    async def insert(self, rows: Sequence[JobColumns]) -> None:
        await self._session.many("insert_jobs", "iiiiiiiiiiiiio", rows)

    async def read(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        return await self._facts("read_jobs", ids)

    async def lock(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        return await self._facts("lock_jobs", ids)

    async def share(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        return await self._facts("share_jobs", ids)

    async def hold(self, ids: Sequence[int]) -> None:
        if ids:
            await self._session.lock("hold_jobs", self._session.ids(ids))

    async def _facts(self, query: str, ids: Sequence[int]) -> dict[int, JobFacts]:
        if not ids:
            return {}
        rows = await self._session.rows(JobFacts, query, self._session.ids(ids))
        return {row[0]: row for row in rows}

    async def specs(self, ids: Sequence[int]) -> dict[int, bytes]:
        if not ids:
            return {}
        return dict(await self._session.fetch("job_specs", self._session.ids(ids)))

    async def results(self, ids: Sequence[int]) -> dict[int, bytes]:
        if not ids:
            return {}
        return dict(await self._session.fetch("job_results", self._session.ids(ids)))

    async def note_tries(self, rows: Sequence[JobTry]) -> None:
        await self._session.many("note_tries", "iiiiiio", rows)

    async def end(self, rows: Sequence[JobEnd]) -> None:
        await self._session.many("end_jobs", "iiiiiiiiiiiiiooo", rows)

    async def record_attempts(self, rows: Sequence[Attempt]) -> None:
        await self._session.many("record_attempts", "iiiiiiioiii", rows)

    async def attempts(self, ids: Sequence[int]) -> dict[int, list[Attempt]]:
        found: dict[int, list[Attempt]] = {}
        for row in await self._session.rows(Attempt, "attempts", self._session.ids(ids)):
            found.setdefault(row.job, []).append(row)
        return found

    async def set_priority(
        self, job: int, adjustment: int, age_from: int, rank: int, flags: int
    ) -> None:
        await self._session.execute("set_priority", job, adjustment, age_from, rank, flags)

    async def set_timeouts(self, rows: Sequence[tuple[int, int | None]]) -> None:
        await self._session.many("set_timeouts", "ii", sorted(rows))

    async def set_superseded(self, old: int, new: int) -> None:
        await self._session.execute("set_superseded", old, new)

    async def dependents(self, ids: Sequence[int], chunk: int) -> dict[int, tuple[int, ...]]:
        if not ids:
            return {}
        rows = await self._session.fetch("dependents", self._session.ids(ids), chunk)
        return {job: self._session.unpack_edges(edges) for job, edges in rows}

    async def claim_keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        values = [(*row[:4], spans_text(row)) for row in rows]
        await self._session.many("claim_keys", "ooioo", values)
        return await self._keys(rows)

    async def retake_keys(
        self, rows: Sequence[KeyRow], instead_of: Sequence[int]
    ) -> dict[tuple[str, str], KeyRow]:
        pairs = zip(rows, instead_of, strict=True)
        values = [(*row[:4], spans_text(row), old) for row, old in pairs]
        await self._session.many("retake_keys", "ooiooi", values)
        return await self._keys(rows)

    async def _keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        """Returns what now stands for the keys of these rows."""
        found = await self._session.fetch_many("read_keys", "oo", [row[:2] for row in rows])
        return {(row[0], row[1]): as_key(row) for row in found}


def records_of(rows: list[Any]) -> list[JobRecord]:
    """Returns records from rows that hold the facts and then the rest."""
    facts = maker(JobFacts)
    return [JobRecord(facts(row[:FACTS]), *row[FACTS:]) for row in rows]

"""Keeps rows of `jobs`, their attempts and keys. Edges are in dependents.py."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import Attempt, JobColumns, JobEnd, JobFacts, JobTry, KeyRow
from windlass.store.postgres.columns import ascending, integers, spread
from windlass.store.postgres.core import dependents
from windlass.store.postgres.session import Rows, Session
from windlass.store.spans import as_key, spans_text


class PostgresJobs:
    """`JobsWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def allocate(self, count: int) -> Sequence[int]:
        numbers: list[int] = await self._session.fetch_value("job_numbers", count)
        return numbers

    async def insert(self, rows: Sequence[JobColumns]) -> None:
        if rows:
            ids, *columns, specs = zip(*rows, strict=True)
            await self._session.execute(
                "insert_jobs", integers(ids), specs, *spread("iiiiiiiiiiii", columns)
            )

    async def lock(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        return await self._facts("lock_jobs", ids)

    async def hold(self, ids: Sequence[int]) -> None:
        if ids:
            await self._session.execute("hold_jobs", ascending(ids))

    async def share(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        return await self._facts("share_jobs", ids)

    async def read(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        return await self._facts("read_jobs", ids)

    async def specs(self, ids: Sequence[int]) -> dict[int, bytes]:
        if not ids:
            return {}
        return dict(map(tuple, await self._session.fetch("job_specs", ascending(ids))))

    async def results(self, ids: Sequence[int]) -> dict[int, bytes]:
        if not ids:
            return {}
        return dict(map(tuple, await self._session.fetch("job_results", ascending(ids))))

    async def note_tries(self, rows: Sequence[JobTry]) -> None:
        if rows:
            *columns, excluded = zip(*rows, strict=True)
            await self._session.execute("note_tries", *map(integers, columns), excluded)

    async def end(self, rows: Sequence[JobEnd]) -> None:
        if rows:
            ids, *columns = zip(*rows, strict=True)
            await self._session.execute(
                "end_jobs", integers(ids), *spread("iiiiiiiiiiiiooo", columns)
            )

    async def record_attempts(self, rows: Sequence[Attempt]) -> None:
        if rows:
            columns = list(zip(*rows, strict=True))
            before, messages, after = columns[:7], columns[7], columns[8:]
            await self._session.execute(
                "record_attempts", *map(integers, before), messages, *map(integers, after)
            )

    async def attempts(self, ids: Sequence[int]) -> dict[int, list[Attempt]]:
        found: dict[int, list[Attempt]] = {}
        for row in await self._session.fetch("attempts", ascending(ids)):
            found.setdefault(row[0], []).append(Attempt._make(row))
        return found

    async def set_priority(
        self, job: int, adjustment: int, age_from: int, rank: int, flags: int
    ) -> None:
        await self._session.execute("set_priority", job, adjustment, age_from, rank, flags)

    async def set_timeouts(self, rows: Sequence[tuple[int, int | None]]) -> None:
        if rows:
            columns = map(integers, zip(*sorted(rows), strict=True))
            await self._session.execute("set_timeouts", *columns)

    async def set_superseded(self, old: int, new: int) -> None:
        await self._session.execute("set_superseded", old, new)

    async def add_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        await dependents.append(self._session, edges)

    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        await dependents.append(self._session, edges)

    async def dependents(self, ids: Sequence[int], chunk: int) -> dict[int, tuple[int, ...]]:
        rows = await self._session.fetch("dependents", ascending(ids), chunk)
        return {job: tuple(edges) for job, edges in rows}

    async def claim_keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        if not rows:
            return {}
        namespaces, keys, jobs, digests, _ = zip(*rows, strict=True)
        spans = list(map(spans_text, rows))
        await self._session.execute("claim_keys", namespaces, keys, integers(jobs), digests, spans)
        found = await self._session.fetch("read_keys", namespaces, keys)
        self._session.vouches |= any(row[2] not in jobs for row in found)
        return {(row[0], row[1]): as_key(row) for row in found}

    async def retake_keys(
        self, rows: Sequence[KeyRow], instead_of: Sequence[int]
    ) -> dict[tuple[str, str], KeyRow]:
        if not rows:
            return {}
        namespaces, keys, jobs, digests, _ = zip(*rows, strict=True)
        spans = list(map(spans_text, rows))
        await self._session.execute(
            "retake_keys", namespaces, keys, integers(jobs), digests, spans, integers(instead_of)
        )
        found = await self._session.fetch("read_keys", namespaces, keys)
        return {(row[0], row[1]): as_key(row) for row in found}

    async def _facts(self, query: str, ids: Sequence[int]) -> dict[int, JobFacts]:
        if not ids:
            return {}
        return facts_by_id(await self._session.fetch(query, ascending(ids)))


def facts_by_id(rows: Rows) -> dict[int, JobFacts]:
    """Returns what decisions need, by job."""
    make = JobFacts._make
    return {row[0]: make(row) for row in rows}

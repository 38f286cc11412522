"""Rows of `jobs`, their attempts, dependents and keys."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from windlass.domain.rows.records import (
    Attempt,
    JobColumns,
    JobEnd,
    JobFacts,
    JobRecord,
    JobTry,
    KeyRow,
    Spans,
)
from windlass.store.sql.session import Role, maker, of_ids, query

FACTS: Final = len(JobFacts._fields)
_spans = msgspec.json.Decoder(Spans).decode


class Jobs(Role, ABC):
    """Reads and writes rows of `jobs`, their attempts, dependents and keys."""

    __slots__ = ()

    read = of_ids("read_jobs").by_id(JobFacts)
    """Reads these rows without locking them."""

    specs = of_ids("job_specs").values(bytes)

    results = of_ids("job_results").values(bytes)
    """Returns the results of the jobs that have one, as JSON."""

    attempts = of_ids("attempts").lists(Attempt)
    """Returns the recorded attempts of each job, ascending by number."""

    async def dependents(self, ids: Sequence[int], chunk: int) -> dict[int, tuple[int, ...]]:
        """Returns the edges in chunk number `chunk` of each job that has one."""
        if not ids:
            return {}
        rows = await self._session.fetch("dependents", self._session.ids(ids), chunk)
        return {job: self._session.unpack_edges(edges) for job, edges in rows}

    async def allocate(self, count: int) -> Sequence[int]:
        """Returns `count` rising ids that were never given before."""
        return await self._session.numbers("job_numbers", count)

    async def insert(self, rows: Sequence[JobColumns]) -> None:
        await self._session.many("insert_jobs", "iiiiiiiiiiiiio", rows)

    lock = of_ids("lock_jobs").by_id(JobFacts)
    """Locks these rows against every other writer, ascending; unknown ids are absent."""

    share = of_ids("share_jobs").by_id(JobFacts)
    """Locks these rows against writers only, ascending; unknown ids are absent."""

    async def hold(self, ids: Sequence[int]) -> None:
        """Locks these rows as `lock` does and returns nothing."""
        if ids:
            await self._session.lock("hold_jobs", self._session.ids(ids))

    note_tries = query("note_tries").many("iiiiiio", JobTry)
    end = query("end_jobs").many("iiiiiiiiiiiiiooo", JobEnd)

    record_attempts = query("record_attempts").many("iiiiiiioiii", Attempt)

    async def set_priority(
        self, job: int, adjustment: int, age_from: int, rank: int, flags: int
    ) -> None:
        """Sets a job's place in the order; an ended job keeps its flags."""
        await self._session.execute("set_priority", job, adjustment, age_from, rank, flags)

    async def set_timeouts(self, rows: Sequence[tuple[int, int | None]]) -> None:
        """Changes the time limits of locked jobs, given as (job, timeout_ms)."""
        await self._session.many("set_timeouts", "ii", sorted(rows))

    set_superseded = query("set_superseded").many("ii", tuple[int, int])
    """Records the successors of ended jobs, as pairs of old and new."""

    async def claim_keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        """Inserts new keys; returns the current row of each (namespace, key)."""
        values = [(*row[:4], spans_text(row)) for row in rows]
        written = await self._session.many("claim_keys", "ooioo", values)
        return await self._keys(rows, written)

    async def retake_keys(
        self, rows: Sequence[KeyRow], instead_of: Sequence[int]
    ) -> dict[tuple[str, str], KeyRow]:
        """Rewrites keys that still name the job in `instead_of`; returns the current rows."""
        pairs = zip(rows, instead_of, strict=True)
        values = [(*row[:4], spans_text(row), old) for row, old in pairs]
        written = await self._session.many("retake_keys", "ooiooi", values)
        return await self._keys(rows, written)

    async def _keys(self, rows: Sequence[KeyRow], written: int) -> dict[tuple[str, str], KeyRow]:
        """Returns the current rows of these keys; `written` of them were just written."""
        if written == len(rows):
            return {(row.namespace, row.key): row for row in rows}
        found = await self._session.fetch_many("read_keys", "oo", [row[:2] for row in rows])
        return {(row[0], row[1]): as_key(row) for row in found}

    @abstractmethod
    async def add_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        """Appends edges (dependent × 2 + any) to each job's list, 1,000 to a chunk."""

    @abstractmethod
    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        """Does the same for jobs that this transaction inserted, which have no dependents yet."""


def records_of(rows: list[Any]) -> list[JobRecord]:
    """Returns records from rows that hold the facts and then the rest."""
    facts = maker(JobFacts)
    return [JobRecord(facts(row[:FACTS]), *row[FACTS:]) for row in rows]


def as_key(row: Iterable[Any]) -> KeyRow:
    """Makes a `KeyRow` from its columns."""
    namespace, key, job, digest, spans = row
    return KeyRow(namespace, key, job, digest, None if spans is None else _spans(spans))


def spans_text(row: KeyRow) -> str | None:
    """Returns the ids as text, or None for a job's own key."""
    return None if row.spans is None else msgspec.json.encode(row.spans).decode()

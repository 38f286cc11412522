"""Keeps rows of `jobs` and `outcomes`, their attempts, dependents and keys."""

from collections.abc import Mapping, Sequence

import apsw

from windlass.domain.rows.records import Attempt, JobColumns, JobEnd, JobFacts, JobTry, KeyRow
from windlass.store.spans import as_key, spans_text
from windlass.store.sqlite.bulk import BulkInsert
from windlass.store.sqlite.rows import Row, as_attempt, as_facts, integers, pack, unpack
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES

CHUNK = 1_000

_INSERT = BulkInsert(QUERIES["insert_jobs"])
_END = BulkInsert(QUERIES["insert_outcomes"])
_RECORD = BulkInsert(QUERIES["insert_attempts"])
_DEPENDENTS = BulkInsert(QUERIES["put_dependents"])
_FACTS = QUERIES["job_facts"]


class SqliteJobs:
    """`JobsWrite` over one connection."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._sequences = sequences

    async def allocate(self, count: int) -> Sequence[int]:
        return self._sequences.take("job", count)

    async def insert(self, rows: Sequence[JobColumns]) -> None:
        _INSERT.run(self._connection, rows)

    async def read(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        if not ids:
            return {}
        rows = self._execute(_FACTS, (integers(sorted(ids)),))
        return {row[0]: as_facts(row) for row in rows}

    # One transaction runs at a time, so nothing needs a lock.
    lock = read
    share = read

    async def hold(self, ids: Sequence[int]) -> None:
        """Transactions run one after another."""

    async def specs(self, ids: Sequence[int]) -> dict[int, bytes]:
        if not ids:
            return {}
        rows: list[Row] = self._execute(QUERIES["job_specs"], (integers(sorted(ids)),)).fetchall()
        return dict(rows)

    async def results(self, ids: Sequence[int]) -> dict[int, bytes]:
        if not ids:
            return {}
        wanted = (integers(sorted(ids)),)
        rows: list[Row] = self._execute(QUERIES["job_results"], wanted).fetchall()
        return dict(rows)

    async def note_tries(self, rows: Sequence[JobTry]) -> None:
        self._executemany(QUERIES["note_tries"], rows)

    async def end(self, rows: Sequence[JobEnd]) -> None:
        _END.run(self._connection, rows)

    async def record_attempts(self, rows: Sequence[Attempt]) -> None:
        _RECORD.run(self._connection, rows)

    async def attempts(self, ids: Sequence[int]) -> dict[int, list[Attempt]]:
        found: dict[int, list[Attempt]] = {}
        if ids:
            for row in self._execute(QUERIES["attempts"], (integers(sorted(set(ids))),)):
                found.setdefault(row[0], []).append(as_attempt(row))
        return found

    async def set_priority(
        self, job: int, adjustment: int, age_from: int, rank: int, flags: int
    ) -> None:
        self._execute(QUERIES["set_priority"], (job, adjustment, age_from, rank, flags))

    async def set_timeouts(self, rows: Sequence[tuple[int, int | None]]) -> None:
        self._executemany(QUERIES["set_timeouts"], rows)

    async def set_superseded(self, old: int, new: int) -> None:
        self._execute(QUERIES["set_superseded"], (old, new))

    async def add_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        rows: list[tuple[int, int, bytes]] = []
        for job, more in edges.items():
            if more:
                rows += self._filled_chunks(job, more)
        self._executemany(QUERIES["put_dependents"], rows)

    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        rows: list[tuple[int, int, bytes]] = []
        for job, its in edges.items():
            if 0 < len(its) <= CHUNK:  # nearly always
                rows.append((job, 0, pack(its)))
            else:
                rows += _chunks(job, 0, its)
        _DEPENDENTS.run(self._connection, rows)

    async def dependents(self, ids: Sequence[int], chunk: int) -> dict[int, tuple[int, ...]]:
        if not ids:
            return {}
        rows = self._execute(QUERIES["dependents"], (integers(sorted(ids)), chunk))
        return {job: unpack(edges) for job, edges in rows}

    async def claim_keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        self._executemany(QUERIES["claim_key"], [(*row[:4], spans_text(row)) for row in rows])
        names = [row[:2] for row in rows]
        standing = map(as_key, self._executemany(QUERIES["key"], names))
        return {(row.namespace, row.key): row for row in standing}

    async def retake_keys(
        self, rows: Sequence[KeyRow], instead_of: Sequence[int]
    ) -> dict[tuple[str, str], KeyRow]:
        bound = zip(rows, instead_of, strict=True)
        self._executemany(
            QUERIES["retake_key"], [(*row[:4], spans_text(row), old) for row, old in bound]
        )
        standing = map(as_key, self._executemany(QUERIES["key"], [row[:2] for row in rows]))
        return {(row.namespace, row.key): row for row in standing}

    def _filled_chunks(self, job: int, more: Sequence[int]) -> list[tuple[int, int, bytes]]:
        """Returns the job's last chunk filled up, and those that follow it."""
        last = self._execute(QUERIES["last_dependents"], (job,)).fetchone()
        number, edges = (last[0], unpack(last[1])) if last else (0, ())
        edges += tuple(more)
        return _chunks(job, number, edges)


def _chunks(job: int, first: int, edges: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """Returns the rows of these edges, from chunk number `first` on."""
    return [
        (job, first + start // CHUNK, pack(edges[start : start + CHUNK]))
        for start in range(0, len(edges), CHUNK)
    ]

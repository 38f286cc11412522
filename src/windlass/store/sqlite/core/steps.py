"""Steps of jobs, and signals."""

from collections.abc import Sequence

import apsw

from windlass.domain.rows.steps import SignalRow, StepRow
from windlass.store.sqlite.rows import Row, as_signal, as_step, integers
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES


class SqliteSteps:
    """`StepsWrite` over one connection."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._sequences = sequences

    async def find(self, job: int, key: str) -> StepRow | None:
        rows = self._execute(QUERIES["find_step"], (job, key)).fetchall()
        return as_step(rows[0]) if rows else None

    async def lock_step(self, job: int, key: str) -> StepRow | None:
        """SQLite runs one transaction at a time: there is nothing to lock."""
        return await self.find(job, key)

    async def count(self, job: int) -> int:
        rows: list[Row] = self._execute(QUERIES["count_steps"], (job,)).fetchall()
        return int(rows[0][0])

    async def of_jobs(self, jobs: Sequence[int]) -> dict[int, list[StepRow]]:
        found: dict[int, list[StepRow]] = {}
        if jobs:
            for row in self._execute(QUERIES["steps_of_jobs"], (integers(sorted(set(jobs))),)):
                found.setdefault(row[0], []).append(as_step(row))
        return found

    async def questions(self, after: int, count: int) -> list[StepRow]:
        return list(map(as_step, self._execute(QUERIES["asked_questions"], (after, count))))

    async def joining(self, after: int, count: int) -> list[StepRow]:
        return list(map(as_step, self._execute(QUERIES["joining_steps"], (after, count))))

    async def next_signal(
        self, namespace: str, name: str, *, after: int, since: int, until: int
    ) -> SignalRow | None:
        wanted = (namespace, name, after, since, until)
        rows = self._execute(QUERIES["next_signal"], wanted).fetchall()
        return as_signal(rows[0]) if rows else None

    async def signal_of_key(self, namespace: str, name: str, key: str) -> SignalRow | None:
        rows = self._execute(QUERIES["signal_of_key"], (namespace, name, key)).fetchall()
        return as_signal(rows[0]) if rows else None

    async def last_signal(self, namespace: str, name: str) -> int:
        rows: list[Row] = self._execute(QUERIES["last_signal"], (namespace, name)).fetchall()
        return int(rows[0][0])

    async def count_signals(self, namespace: str, most: int) -> int:
        rows: list[Row] = self._execute(QUERIES["count_signals"], (namespace, most)).fetchall()
        return int(rows[0][0])

    async def open_signals(self, count: int) -> list[SignalRow]:
        return list(map(as_signal, self._execute(QUERIES["open_signals"], (count,))))

    async def put(self, row: StepRow) -> None:
        self._execute(QUERIES["put_step"], row)

    async def lock_pending(self, jobs: Sequence[int]) -> list[StepRow]:
        if not jobs:
            return []
        wanted = integers(sorted(set(jobs)))
        return list(map(as_step, self._execute(QUERIES["pending_steps"], (wanted,))))

    async def lock_name(self, namespace: str, name: str) -> None:
        """SQLite runs one transaction at a time."""

    async def waiting(self, signal: SignalRow, count: int) -> list[StepRow]:
        wanted = (signal.namespace, signal.name, signal.id, signal.at, count)
        return list(map(as_step, self._execute(QUERIES["waiting_steps"], wanted)))

    async def add_signal(self, row: SignalRow) -> int:
        (number,) = self._sequences.take("signals")
        self._execute(QUERIES["insert_signal"], row._replace(id=number))
        return number

    async def close_signal(self, signal: int) -> None:
        self._execute(QUERIES["close_signal"], (signal,))

    async def drop_signals(self, before: int, count: int) -> int:
        self._execute(QUERIES["drop_signals"], (before, count))
        return self._connection.changes()

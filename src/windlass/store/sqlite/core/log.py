"""The event log and the counters beside it."""

from collections.abc import Mapping, Sequence

import apsw

from windlass.domain.rows.events import Event
from windlass.store.sqlite.bulk import BulkInsert
from windlass.store.sqlite.core.history import events_of_job
from windlass.store.sqlite.rows import Row, as_event, integers
from windlass.store.sqlite.statements import QUERIES

_APPEND = BulkInsert(QUERIES["insert_events"])


class SqliteLog:
    """`LogWrite` over one connection; `server` names this engine's shard of the counters."""

    def __init__(self, connection: apsw.Connection, server: str) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._server = server

    async def append(self, events: Sequence[Event]) -> None:
        _APPEND.run(self._connection, events)

    async def read(self, after: int, count: int) -> list[Event]:
        return list(map(as_event, self._execute(QUERIES["read_events"], (after, count))))

    async def newest(self) -> int:
        rows: list[Row] = self._execute(QUERIES["newest_event_seq"]).fetchall()
        return int(rows[0][0])

    async def times(self, numbers: Sequence[int]) -> dict[int, int]:
        rows: list[Row] = self._execute(
            QUERIES["event_times"], (integers((*numbers, 0)),)
        ).fetchall()
        return dict(rows)

    async def of_job(self, job: int) -> list[Event]:
        return events_of_job(self._connection, job)

    async def jump(self, event: Event) -> None:
        self._execute(QUERIES["insert_event_at"], event)

    async def bump(self, deltas: Mapping[str, int]) -> None:
        server = self._server
        rows = [(server, name, delta) for name, delta in deltas.items()]
        self._executemany(QUERIES["bump_counter"], rows)

    async def counters(self) -> dict[str, int]:
        rows: list[Row] = self._execute(QUERIES["counters"]).fetchall()
        return dict(rows)

"""The event log and the counters beside it."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.events import Event
from windlass.domain.rows.gaps import Mark
from windlass.store.postgres.columns import integers, spread
from windlass.store.postgres.session import Rows, Session


class PostgresLog:
    """`LogWrite` over one transaction; `server` names this engine's shard of the counters."""

    __slots__ = ("_server", "_session")

    def __init__(self, session: Session, server: str) -> None:
        self._session = session
        self._server = server

    async def append(self, events: Sequence[Event]) -> None:
        if not events:
            return
        _, at, kinds, jobs, *others = zip(*events, strict=True)
        args = spread("iiiiiiiooo", [at, kinds, *others])
        seq = await self._session.fetch_value("append_events", integers(jobs), *args)
        self._session.event = Mark(seq, events[-1].at)

    async def read(self, after: int, count: int) -> list[Event]:
        return events_of(await self._session.fetch("read_events", after, count))

    async def newest(self) -> int:
        return int(await self._session.fetch_value("newest_event"))

    async def times(self, numbers: Sequence[int]) -> dict[int, int]:
        return dict(map(tuple, await self._session.fetch("event_times", integers(numbers))))

    async def of_job(self, job: int) -> list[Event]:
        return events_of(await self._session.fetch("events_of_job", job))

    async def jump(self, event: Event) -> None:
        await self._session.execute("insert_event_at", *event)

    async def bump(self, deltas: Mapping[str, int]) -> None:
        if deltas:
            names, values = zip(*sorted(deltas.items()), strict=True)
            slot = self._session.link.slot
            await self._session.execute(
                "bump_counters", self._server, slot, names, integers(values)
            )

    async def counters(self) -> dict[str, int]:
        return dict(map(tuple, await self._session.fetch("counters")))


def events_of(rows: Rows) -> list[Event]:
    return list(map(Event._make, rows))

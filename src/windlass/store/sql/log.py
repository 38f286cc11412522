"""The event log and the counters beside it."""

from collections.abc import Sequence

from windlass.domain.rows.events import Event
from windlass.store.sql.session import Role, Session


class Log(Role):
    """`LogWrite`, but for what it appends; `server` names this engine's shard of the counters."""

    __slots__ = ("_server",)

    def __init__(self, session: Session, server: str) -> None:
        super().__init__(session)
        self._server = server

    async def read(self, after: int, count: int) -> list[Event]:
        return await self._session.rows(Event, "read_events", after, count)

    async def newest(self) -> int:
        return int(await self._session.fetch_value("newest_event_seq"))

    async def times(self, numbers: Sequence[int]) -> dict[int, int]:
        return dict(await self._session.fetch("event_times", self._session.integers(numbers)))

    async def jump(self, event: Event) -> None:
        await self._session.execute("insert_event_at", *event)

    async def counters(self) -> dict[str, int]:
        return dict(await self._session.fetch("counters"))

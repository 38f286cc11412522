"""The event log and the counters beside it."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.events import Event
from windlass.store.memory.tables import Tables


class MemoryLog:
    """`LogWrite` over the tables; `server` names this engine's shard of the counters."""

    def __init__(self, tables: Tables, server: str) -> None:
        self._tables = tables
        self._server = server

    async def append(self, events: Sequence[Event]) -> None:
        for event, seq in zip(events, self._tables.number("event", len(events)), strict=True):
            self._tables.events.insert(seq, event._replace(seq=seq))

    async def read(self, after: int, count: int) -> list[Event]:
        return self._tables.events.between((after + 1,), None, count)

    async def newest(self) -> int:
        return max((event.seq for event in self._tables.events), default=0)

    async def times(self, numbers: Sequence[int]) -> dict[int, int]:
        oldest = self._tables.events.between((), None, 1)
        found = [self._tables.events.get(number) for number in numbers]
        return {event.seq: event.at for event in (*oldest, *found) if event is not None}

    async def of_job(self, job: int) -> list[Event]:
        return [event for event in self._tables.events.between((), None) if event.job == job]

    async def jump(self, event: Event) -> None:
        self._tables.events.insert(event.seq, event)

    async def bump(self, deltas: Mapping[str, int]) -> None:
        counters = self._tables.counters
        for name, delta in deltas.items():
            _, value = counters.get((self._server, name)) or (name, 0)
            counters.put((self._server, name), (name, value + delta))

    async def counters(self) -> dict[str, int]:
        return sum_counters(self._tables)


def sum_counters(tables: Tables) -> dict[str, int]:
    """Returns every counter, summed over the shards, in the order of their names."""
    sums: dict[str, int] = {}
    for name, value in sorted(tables.counters):
        sums[name] = sums.get(name, 0) + value
    return sums

"""Steps of jobs, and signals."""

from collections.abc import Iterator, Sequence

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.steps import SignalRow, StepKind, StepRow, StepState
from windlass.store.memory.tables import Tables

SUSPENDED = State.SUSPENDED.code


class MemorySteps:
    """`StepsWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._steps = tables.steps
        self._signals = tables.signals

    async def find(self, job: int, key: str) -> StepRow | None:
        return (self._steps.get(job) or {}).get(key)

    async def lock_step(self, job: int, key: str) -> StepRow | None:
        """Transactions run one after another: there is nothing to lock."""
        return await self.find(job, key)

    async def count(self, job: int) -> int:
        return len(self._of(job))

    async def of_jobs(self, jobs: Sequence[int]) -> dict[int, list[StepRow]]:
        found = {job: self._of(job) for job in sorted(set(jobs))}
        return {
            job: sorted(
                (row._replace(value=None) for row in rows), key=lambda row: (row.asked_at, row.key)
            )
            for job, rows in found.items()
            if rows
        }

    async def questions(self, after: int, count: int) -> list[StepRow]:
        found = sorted(
            (row for row in self._all() if row.job > after and self._is_asked(row)),
            key=lambda row: (row.job, row.key),
        )
        return found[:count]

    def _is_asked(self, row: StepRow) -> bool:
        due = self._tables.due.get(row.job)
        return (
            row.kind == StepKind.QUESTION
            and row.state == StepState.PENDING
            and due is not None
            and (due.state, due.ticket.attempt) == (SUSPENDED, row.attempt)
        )

    async def joining(self, after: int, count: int) -> list[StepRow]:
        found = (row for row in self._all() if row.kind == StepKind.JOBS and row.job > after)
        pending = (row for row in found if row.state == StepState.PENDING)
        return sorted(pending, key=lambda row: (row.job, row.key))[:count]

    async def next_signal(
        self, namespace: str, name: str, *, after: int, since: int, until: int
    ) -> SignalRow | None:
        for row in self._signals.between((after + 1,), None):
            if (row.namespace, row.name) == (namespace, name) and since <= row.at <= until:
                return row
        return None

    async def signal_of_key(self, namespace: str, name: str, key: str) -> SignalRow | None:
        wanted = namespace, name, key
        return next(
            (row for row in self._signals if (row.namespace, row.name, row.key) == wanted), None
        )

    async def last_signal(self, namespace: str, name: str) -> int:
        named = (row for row in self._signals if (row.namespace, row.name) == (namespace, name))
        return max((row.id for row in named), default=0)

    async def count_signals(self, namespace: str, most: int) -> int:
        return min(most, sum(row.namespace == namespace for row in self._signals))

    async def open_signals(self, count: int) -> list[SignalRow]:
        return [row for row in self._signals.between((), None) if row.is_open][:count]

    async def put(self, row: StepRow) -> None:
        self._steps.put(row.job, {**(self._steps.get(row.job) or {}), row.key: row})

    async def lock_pending(self, jobs: Sequence[int]) -> list[StepRow]:
        rows = [row for job in sorted(set(jobs)) for row in self._of(job)]
        return [row for row in rows if row.state == StepState.PENDING]

    async def lock_name(self, namespace: str, name: str) -> None:
        """Transactions run one after another."""

    async def waiting(self, signal: SignalRow, count: int) -> list[StepRow]:
        wanted = signal.namespace, signal.name
        found = [
            row
            for row in self._all()
            if row.kind == StepKind.SIGNAL
            and row.state == StepState.PENDING
            and (row.namespace, row.name) == wanted
            and row.due_at >= signal.at
            and row.signal is not None
            and row.signal < signal.id
        ]
        return sorted(found, key=lambda row: (row.job, row.key))[:count]

    async def add_signal(self, row: SignalRow) -> int:
        (number,) = self._tables.number("signals")
        self._signals.insert(number, row._replace(id=number))
        return number

    async def close_signal(self, signal: int) -> None:
        row = self._signals.get(signal)
        if row is not None:
            self._signals.put(signal, row._replace(is_open=0))

    async def drop_signals(self, before: int, count: int) -> int:
        old = sorted((row.at, row.id) for row in self._signals if row.at < before)[:count]
        for _, number in old:
            self._signals.pop(number)
        return len(old)

    def _of(self, job: int) -> list[StepRow]:
        return sorted((self._steps.get(job) or {}).values(), key=lambda row: row.key)

    def _all(self) -> Iterator[StepRow]:
        return (row for rows in self._steps for row in rows.values())

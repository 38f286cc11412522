"""Moves plain jobs in bulk, with few statements and few columns."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.events import Moves
from windlass.domain.rows.gaps import Mark
from windlass.domain.rows.records import Completed, Freed, JobColumns, Waited, Worker
from windlass.messages.sync import Finished
from windlass.store.postgres.places import TICKET, PostgresPlaces
from windlass.store.postgres.session import Session, integers, spread
from windlass.store.sql.flow import Flow


class PostgresFlow(Flow):
    """Binds columns as arrays, so that a statement takes all jobs at once."""

    __slots__ = ()
    _session: Session

    async def enter(self, rows: Sequence[JobColumns]) -> None:
        if rows:
            ids, *columns, specs = zip(*rows, strict=True)
            args = spread("iiiiiiiiiiii", columns)
            await self._session.execute("enter", integers(ids), specs, *args)

    async def block(self, jobs: Sequence[JobColumns], unmet: Sequence[int]) -> None:
        """Runs the statement of `add_waits` with columns instead of a record for each job."""
        if jobs:
            columns = list(zip(*jobs, strict=True))
            ids, zero, none = columns[0], (0,) * len(jobs), (None,) * len(jobs)
            ticket = columns[1], columns[4], zero, columns[2], columns[9], none
            args = spread(TICKET + "iiii", [*ticket, unmet, zero, none, columns[7]])
            await self._session.execute("add_waits", integers(ids), *args)

    async def free(self, met: Mapping[int, int], now: int, young_from: int) -> Freed:
        places, freed = PostgresPlaces(self._session), Freed([], [])
        for wait in await places.meet(met):
            young = wait.age_from >= young_from
            due = wait.not_before is None or wait.not_before <= now
            if young and due and not wait.manual and wait.ticket.limit is None:
                freed.ready.append(wait.ticket)
            else:
                freed.others.append(wait)
        await places.add_ready(freed.ready)
        return freed

    async def complete(self, now: int, done: Sequence[tuple[Worker, Finished]]) -> list[int]:
        """Runs two statements: the second sees what the first had to wait for."""
        if not done:
            return []
        ordered = sorted(done, key=_job)
        ids = integers([item.job for _, item in ordered])
        tied = {row[0] for row in await self._session.fetch("lock_untied_jobs", ids)}
        if tied:
            ordered = [report for report in ordered if report[1].job not in tied]
            ids = integers([item.job for _, item in ordered])
        if not ordered:
            return []
        rows = await self._session.fetch("complete", ids, *_columns(ordered), now)
        return [row[0] for row in rows]

    async def complete_tied(
        self, now: int, done: Sequence[tuple[Worker, Finished]]
    ) -> list[Completed]:
        """Runs two statements, for the same reason."""
        if not done:
            return []
        ordered = sorted(done, key=_job)
        ids = integers([item.job for _, item in ordered])
        await self._session.fetch("hold_jobs", ids)
        *spreads, exit_code, result = _columns(ordered)
        rows = await self._session.fetch(
            "complete_tied", ids, *spreads, len(ordered), exit_code, result, now
        )
        return sorted(map(Completed._make, rows))

    async def end_waiting(
        self, jobs: Sequence[int], state: int, now: int, reason: str, *, queued: bool
    ) -> list[Waited]:
        if not jobs:
            return []
        how = state, now, reason
        ended = list(map(Waited._make, await self._session.fetch(
            "end_blocked", integers(sorted(jobs)), *how
        )))  # fmt: skip
        left = sorted(set(jobs).difference(row.job for row in ended))
        if left and queued:
            rows = await self._session.fetch("end_queued", integers(left), *how)
            ended += map(Waited._make, rows)
        return sorted(ended)

    async def log(self, moves: Moves) -> None:
        if not moves.jobs or not moves.steps:
            return
        path = [moves.steps[0][0], *(to for _, to in moves.steps)]
        seq = await self._session.fetch_value(
            "append_moves",
            moves.at,
            integers(list(moves.jobs)),
            *spread("i", [list(moves.attempts)]),
            moves.worker,
            moves.incarnation,
            integers(path),
            moves.reason,
            moves.actor,
            moves.data,
        )
        self._session.event = Mark(seq, moves.at)


def _job(report: tuple[Worker, Finished]) -> int:
    return report[1].job


def _columns(ordered: Sequence[tuple[Worker, Finished]]) -> Sequence[object]:
    workers, items = zip(*ordered, strict=True)
    columns = [
        [item.attempt for item in items],
        [worker.id for worker in workers],
        [worker.incarnation for worker in workers],
        [item.exit_code for item in items],
        [item.result for item in items],
    ]
    return spread("iiiio", columns)

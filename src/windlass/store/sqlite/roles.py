"""The roles as SQLite implements them: reads are cheap, so a few small ones make a view.

Lists of dependents are packed edges, 1,000 to a chunk.

The events of one job are found without an index that holds them all. Such an index would cost every
job a seventh of its way through the store. So it holds only the unusual events; the others happened
at times that the job's own rows know, and events stand in the order of their times. Whether all
were found is certain: the transitions of a job form a chain from its beginning to where it stands
now, and a missing one leaves a gap. Only then is the whole log read. Where retention has removed
the oldest events, a chain may begin later, or have no events.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import apsw

from windlass.domain.rows.events import BaselineKind, Event
from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import JobRecord, RateRow, WorkflowRow
from windlass.domain.rows.views import JobFilter, Place
from windlass.store.job_filters import Candidate, RowFilter, Source, make_view
from windlass.store.job_reads import Seen, Stretch
from windlass.store.sql.catalog import Catalog
from windlass.store.sql.jobs import Jobs
from windlass.store.sql.log import Log, is_whole, standing_states
from windlass.store.sql.placement import Limits, Placement, RateKey
from windlass.store.sql.retention import Retention
from windlass.store.sql.session import maker
from windlass.store.sql.transaction import WriteTx
from windlass.store.sql.views import Views
from windlass.store.sql.workflows import Workflows
from windlass.store.sqlite.flow import SqliteFlow
from windlass.store.sqlite.places import SqliteLeases, SqlitePlaces
from windlass.store.sqlite.session import SqliteSession
from windlass.store.sqlite.statements import QUERIES, Row, pack, unpack

CHUNK = 1_000
_REMOVALS = (
    "remove_jobs",
    "remove_outcomes",
    "remove_attempts",
    "remove_dependents",
    "remove_keys",
    "remove_logs",
    "remove_artifacts",
    "remove_progress",
    "remove_dynamic",
    "remove_usage",
    "remove_steps",
)


def events_of_job(connection: apsw.Connection, job: int) -> list[Event]:
    """Returns all events of `job`, in order."""
    found = {event.seq: event for event in _events(connection, "rare_events_of_job", (job,))}
    times = _times(connection, job)
    for span in _spans(connection, times):
        for event in _events(connection, "events_of_job_between", (job, *span)):
            found[event.seq] = event
    events = [found[seq] for seq in sorted(found)]
    trimmed = bool(times) and _is_trimmed(connection, min(times))
    if is_whole(events, _standing(connection, job), trimmed):
        return events
    return _events(connection, "events_of_job", (job,))


def _standing(connection: apsw.Connection, job: int) -> frozenset[int]:
    """Returns the states that the job may be in now, judged by its outcome and lease."""
    rows: list[Row] = connection.execute(QUERIES["job_standing"], (job,)).fetchall()
    if not rows:
        return frozenset()
    return standing_states(rows[0][0])


def _times(connection: apsw.Connection, job: int) -> list[int]:
    rows: list[Row] = connection.execute(QUERIES["job_times"], (job,)).fetchall()
    return [at for (at,) in rows if at is not None]


def _is_trimmed(connection: apsw.Connection, created_at: int) -> bool:
    """Returns whether events as old as this may have been removed."""
    rows: list[Row] = connection.execute(QUERIES["oldest_event"]).fetchall()
    return bool(rows) and rows[0][0] > 1 and created_at <= rows[0][1]


def _spans(connection: apsw.Connection, times: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the numbers of the first and last event at each time, by bisecting the log."""
    newest: list[Row] = connection.execute(QUERIES["newest_event_seq"]).fetchall()
    log = range(1, newest[0][0] + 1)

    def time_of(seq: int) -> int:
        rows: list[Row] = connection.execute(QUERIES["event_time"], (seq,)).fetchall()
        return int(rows[0][0])

    return [
        (log[bisect_left(log, at, key=time_of)], bisect_left(log, at + 1, key=time_of))
        for at in times
        if log and at <= time_of(log[-1])
    ]


def _events(connection: apsw.Connection, query: str, bindings: tuple[int, ...]) -> list[Event]:
    return list(map(maker(Event), connection.execute(QUERIES[query], bindings)))


class SqliteJobs(Jobs):
    """Implements `Jobs` on SQLite."""

    __slots__ = ()

    async def add_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        rows: list[tuple[int, int, bytes]] = []
        for job, more in edges.items():
            if more:
                rows += await self._filled_chunks(job, more)
        await self._session.many("put_dependents", "iio", rows)

    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        rows: list[tuple[int, int, bytes]] = []
        for job, its in edges.items():
            if 0 < len(its) <= CHUNK:  # nearly always
                rows.append((job, 0, pack(its)))
            else:
                rows += _chunks(job, 0, its)
        await self._session.many("put_dependents", "iio", rows)

    async def _filled_chunks(self, job: int, more: Sequence[int]) -> list[tuple[int, int, bytes]]:
        """Returns the job's last chunk, filled up, and the chunks that follow."""
        last = await self._session.fetch("last_dependents", job)
        number, edges = (last[0][0], unpack(last[0][1])) if last else (0, ())
        edges += tuple(more)
        return _chunks(job, number, edges)


def _chunks(job: int, first: int, edges: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """Returns the rows of these edges, from chunk number `first` on."""
    return [
        (job, first + start // CHUNK, pack(edges[start : start + CHUNK]))
        for start in range(0, len(edges), CHUNK)
    ]


class SqliteCatalog(Catalog):
    """Implements `Catalog` on SQLite."""

    __slots__ = ()
    _session: SqliteSession

    async def follow_timeline(self) -> None:
        """Returns None: SQLite has no timelines."""

    async def jump_ids(self, now: int) -> Gap:
        newest = (await self._session.fetch("newest_ids"))[0]
        return Gap(self._session.sequences.jump(max(newest), now), now, *newest)


class SqlitePlacement(Placement):
    """Implements `Placement` on SQLite."""

    __slots__ = ()

    async def lock_rates(self, keys: Sequence[RateKey], wait: bool) -> dict[RateKey, RateRow]:
        """Reads them one by one: a claim needs few, and there is nothing to lock."""
        del wait
        found: dict[RateKey, RateRow] = {}
        for key in sorted(keys):
            row = await self._session.row(RateRow, "rate", *key)
            if row is None:
                await self._session.execute("add_rate", *key)
            found[key] = row or RateRow(*key, 0, "[]")
        return found


class SqliteLimits(Limits):
    """Implements `Limits` on SQLite."""

    __slots__ = ()
    _session: SqliteSession

    async def intern(self, rows: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str], int]:
        """Numbers new keys in the order of `rows`."""
        return {
            (namespace, key): await self._intern(namespace, key, most)
            for namespace, key, most in rows
        }

    async def _intern(self, namespace: str, key: str, most: int) -> int:
        limit: int | None = await self._session.fetch_value("limit_id", namespace, key)
        if limit is not None:
            await self._session.execute("set_limit", limit, most)
            return limit
        (limit,) = self._session.sequences.take("limit")
        await self._session.execute("insert_limit", limit, namespace, key, most)
        return limit


class SqliteLog(Log):
    """Implements `Log` on SQLite, where each server has counters of its own."""

    __slots__ = ("_server",)
    _session: SqliteSession

    def __init__(self, session: SqliteSession, server: str) -> None:
        super().__init__(session)
        self._server = server

    async def append(self, events: Sequence[Event]) -> None:
        await self._session.many("insert_events", "iiiiiiiiiooo", events)

    async def of_job(self, job: int) -> list[Event]:
        return events_of_job(self._session.connection, job)

    async def bump(self, deltas: Mapping[str, int]) -> None:
        rows = [(self._server, name, delta) for name, delta in deltas.items()]
        await self._session.many("bump_counters", "ooi", rows)


class SqliteWorkflows(Workflows):
    """Implements `Workflows` on SQLite."""

    __slots__ = ()

    async def bump(self, deltas: Mapping[int, Mapping[int, int]]) -> list[WorkflowRow]:
        known = await self.lock(list(deltas))
        changed = [_bumped(row, deltas[row.id]) for row in known.values()]
        texts = [(row.id, self._session.pack(row.counts)) for row in changed if deltas[row.id]]
        await self._session.many("set_counts", "io", texts)
        return changed


def _bumped(row: WorkflowRow, deltas: Mapping[int, int]) -> WorkflowRow:
    counts = list(row.counts)
    for state, delta in deltas.items():
        counts[state] += delta
    return row._replace(counts=tuple(counts))


class SqliteRetention(Retention):
    """Implements `Retention` on SQLite."""

    __slots__ = ()

    async def try_lock(self) -> bool:
        """Returns True: SQLite runs one transaction at a time."""
        return True

    async def remove_jobs(self, ids: Sequence[int]) -> None:
        if ids:
            wanted = self._session.integers(ids)
            for removal in _REMOVALS:
                await self._session.execute(removal, wanted)

    async def remove_workflows(self, ids: Sequence[int]) -> None:
        if not ids:
            return
        gone = await self._session.fetch("remove_workflows", self._session.integers(ids))
        numbers = [workflow for (workflow,) in gone]
        if numbers:
            wanted = self._session.integers(numbers)
            await self._session.execute("remove_workflow_about", wanted)
            await self._session.execute("remove_workflow_keys", wanted)
        await self.drop_baseline(BaselineKind.WORKFLOW, numbers)

    async def forget_commits(self) -> None:
        """Does nothing: SQLite keeps no marks, since no answer is lost."""


class SqliteViews(Views):
    """Implements `Views` on SQLite: a job is combined from one read per table."""

    async def _look(
        self,
        sources: tuple[Source, ...] | list[int],
        wanted: JobFilter,
        row_filter: RowFilter,
        stretch: Stretch,
    ) -> Seen:
        if sources != (Source.JOBS,) or row_filter.is_open:
            return await super()._look(sources, wanted, row_filter, stretch)
        query = "scan_ended" if stretch.down else "scan_ended_up"
        rows = await self._session.rows(Candidate, query, stretch.start, stretch.width)
        ended = len(rows) < stretch.width
        return Seen(row_filter.passing(rows), len(rows), rows[-1].job if rows else 0, ended)

    async def _ready_first(self, shapes: Sequence[int], after: Place, count: int) -> list[Place]:
        probes = [(shape, *after, count) for shape in shapes]
        rows = await self._session.fetch_many("ready_first", "iiii", probes)
        return sorted((rank, job) for rank, job in rows)[:count]

    async def _views(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns these jobs in this order."""
        if not ids:
            return []
        records = await self._records(ids)
        unfinished = [job for job in ids if job in records and records[job].facts.is_open]
        leases = await self._leases(unfinished)
        waiting = [job for job in unfinished if job not in leases]
        found = sorted(await self._standings(waiting), key=lambda row: row.state, reverse=True)
        places = {row.job: row for row in found}
        last = {record.facts.worker for record in records.values()}
        held = {lease.worker for lease in leases.values()}
        names = await self.worker_names({n for n in last if n is not None} | held)
        logs, progress = await self._files.logs(ids), await self._files.progress(ids)
        dynamic = await self._files.dynamic(ids)
        return [
            make_view(
                records[job], leases.get(job), places.get(job), names, logs.get(job, ()),
                progress.get(job), dynamic.get(job),
            )
            for job in ids
            if job in records
        ]  # fmt: skip


@dataclass(slots=True, kw_only=True)
class SqliteTx(WriteTx):
    """The roles are made once per connection; only `now` changes."""

    places: SqlitePlaces

    def at(self, now: int) -> Self:
        """Returns the roles for a transaction at this time."""
        self.now = now
        return self


def roles_over(session: SqliteSession, server: str) -> SqliteTx:
    """Returns all roles over one connection."""
    places = SqlitePlaces(session)
    return SqliteTx(
        now=0,
        session=session,
        jobs=SqliteJobs(session),
        places=places,
        leases=SqliteLeases(session, places),
        workflows=SqliteWorkflows(session),
        limits=SqliteLimits(session),
        catalog=SqliteCatalog(session),
        log=SqliteLog(session, server),
        flow=SqliteFlow(session, places),
        views=SqliteViews(session),
        retention=SqliteRetention(session),
        placement=SqlitePlacement(session),
    )

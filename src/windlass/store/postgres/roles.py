"""The roles as PostgreSQL implements them."""

from collections.abc import Iterator, Mapping, Sequence

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.events import Event
from windlass.domain.rows.gaps import Gap, Mark
from windlass.domain.rows.records import JobColumns, JobEnd, KeyRow, RateRow, WorkflowRow
from windlass.store.postgres.session import Session, integers, spread
from windlass.store.sql.catalog import Catalog
from windlass.store.sql.jobs import Jobs
from windlass.store.sql.log import Log, is_whole, standing_states
from windlass.store.sql.placement import Limits, Placement, RateKey
from windlass.store.sql.retention import Retention
from windlass.store.sql.session import of_ids, query
from windlass.store.sql.workflows import Workflows, workflows_of

Name = tuple[str, str]
WIDTH = len(STATE_BY_CODE)
CHUNK = 1_000  # edges
LATE_MS = (100, 60_000)  # between the time of a transaction and the number of its events


class PostgresCatalog(Catalog):
    """Implements `Catalog` on PostgreSQL."""

    __slots__ = ()

    async def follow_timeline(self) -> tuple[int, int] | None:
        await self._session.lock("lock_timeline")
        noted, present = (await self._session.fetch("timelines"))[0]
        if noted == present:
            return None
        await self._session.execute("note_timeline", present)
        return None if noted is None else (noted, present)

    async def jump_ids(self, now: int) -> Gap:
        first, *newest = (await self._session.fetch("jump_ids", now))[0]
        return Gap(first, now, *newest)


class PostgresPlacement(Placement):
    """Implements `Placement` on PostgreSQL."""

    __slots__ = ()

    async def lock_rates(self, keys: Sequence[RateKey], wait: bool) -> dict[RateKey, RateRow]:
        if not keys:
            return {}
        names = [namespace for namespace, _ in keys], [key for _, key in keys]
        lock = "lock_rates" if wait else "lock_free_rates"
        rows = await self._session.rows(RateRow, lock, *names)
        if len(rows) < len(keys):
            known = {(r[0], r[1]) for r in await self._session.fetch("known_rates", *names)}
            new = [key for key in sorted(keys) if key not in known]
            if new and wait:
                # If it may not wait, it cannot wait for another transaction's new row either.
                await self._session.many("add_rates", "oo", new)
                rows = await self._session.rows(RateRow, lock, *names)
        return {(row.namespace, row.key): row for row in rows}


class PostgresLimits(Limits):
    """Implements `Limits` on PostgreSQL."""

    __slots__ = ()

    async def intern(self, rows: Sequence[tuple[str, str, int]]) -> dict[Name, int]:
        """Numbers new keys in the order of `rows`."""
        wanted = {(namespace, key): most for namespace, key, most in rows}
        if not wanted:
            return {}
        known = await self._find(wanted)
        missing = {name: most for name, most in wanted.items() if name not in known}
        if missing:
            await self._session.execute("insert_limits", *_names(missing), _values(missing))
            known = await self._find(wanted)
        if any(most != wanted[name] for name, (_, most) in known.items()):
            # Lock all of them, so that the caller's locks are taken in one order.
            both = sorted((limit, wanted[name]) for name, (limit, _) in known.items())
            columns = map(integers, zip(*both, strict=True))
            await self._session.execute("set_limits", *columns)
        return {name: known[name][0] for name in wanted}

    async def _find(self, names: Mapping[Name, int]) -> dict[Name, tuple[int, int]]:
        rows = await self._session.fetch("find_limits", *_names(names))
        return {(namespace, key): (limit, most) for namespace, key, limit, most in rows}


def _names(names: Mapping[Name, int]) -> tuple[list[str], list[str]]:
    return [namespace for namespace, _ in names], [key for _, key in names]


def _values(names: Mapping[Name, int]) -> str:
    return integers(list(names.values()))


class PostgresLog(Log):
    """Implements `Log` on PostgreSQL."""

    __slots__ = ()
    _session: Session

    async def append(self, events: Sequence[Event]) -> None:
        if not events:
            return
        _, at, kinds, jobs, *others = zip(*events, strict=True)
        args = spread("iiiiiiiooo", [at, kinds, *others])
        seq = await self._session.fetch_value("append_events", integers(jobs), *args)
        self._session.event = Mark(seq, events[-1].at)

    fold = query("fold_counters").run()

    async def of_job(self, job: int, /) -> list[Event]:
        """Looks where the rows of the job say that something happened, wider if that is not all."""
        found = await self._session.fetch("job_standing", job)
        standing, trimmed = found[0] if found else (None, False)
        states = standing_states(standing) if found else frozenset()
        for ms in LATE_MS:
            events = list(map(Event._make, await self._session.fetch("events_near_job", job, ms)))
            if is_whole(events, states, bool(trimmed)):
                return events
        return list(map(Event._make, await self._session.fetch("events_of_job", job)))

    async def bump(self, deltas: Mapping[str, int]) -> None:
        if deltas:
            names, values = zip(*sorted(deltas.items()), strict=True)
            await self._session.execute("bump_counters", names, integers(values))


class PostgresWorkflows(Workflows):
    """Implements `Workflows` on PostgreSQL."""

    __slots__ = ()

    async def bump(self, deltas: Mapping[int, Mapping[int, int]]) -> list[WorkflowRow]:
        if not deltas:
            return []
        ids = sorted(deltas)
        flat = [deltas[workflow].get(state, 0) for workflow in ids for state in range(WIDTH)]
        rows = await self._session.fetch("bump_workflows", integers(ids), integers(flat), WIDTH)
        return workflows_of(self._session, rows)


class PostgresRetention(Retention):
    """Implements `Retention` on PostgreSQL."""

    __slots__ = ()

    async def try_lock(self) -> bool:
        return bool(await self._session.fetch_value("try_retention"))

    trim_events = query("trim_events", int).number()
    remove_jobs = of_ids("remove_jobs").run()
    remove_workflows = of_ids("remove_workflows").run()
    forget_commits = query("forget_commits").run()


class PostgresJobs(Jobs):
    """Implements `Jobs` on PostgreSQL.

    A list of dependents is packed edges, 1,000 to a chunk. Submits that name the same job hold it
    `FOR SHARE` only, so several may append to one list at once. Chunk 0 is the lock: whoever
    inserts it first, or locks it, appends; the others wait.
    """

    __slots__ = ()
    _session: Session

    async def insert(self, rows: Sequence[JobColumns]) -> None:
        if rows:
            ids, *columns, specs = zip(*rows, strict=True)
            await self._session.execute(
                "insert_jobs", integers(ids), specs, *spread("iiiiiiiiiiii", columns)
            )

    async def end(self, rows: Sequence[JobEnd]) -> None:
        if rows:
            ids, *columns = zip(*rows, strict=True)
            changed = spread("iiiiiiiiiiiiooo", columns)
            await self._session.execute("end_jobs", integers(ids), *changed)

    async def add_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        await _append(self._session, edges)

    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        await _append(self._session, edges)

    async def claim_keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        found = await super().claim_keys(rows)
        jobs = {row.job for row in rows}
        self._session.vouches |= any(row.job not in jobs for row in found.values())
        return found


async def _append(session: Session, edges: Mapping[int, Sequence[int]]) -> None:
    """Appends to each list; usually there is none yet, and one statement is enough."""
    jobs = sorted(job for job, more in edges.items() if more)
    if not jobs:
        return
    edges = {job: list(edges[job]) for job in jobs}
    firsts = [integers(edges[job][:CHUNK]) for job in jobs]
    rows = await session.fetch("start_dependents", integers(jobs), firsts)
    started = {row[0] for row in rows}
    chunks = [
        chunk
        for job in jobs
        if job in started and len(edges[job]) > CHUNK
        for chunk in _split(job, 1, 0, edges[job][CHUNK:])
    ]
    known = [job for job in jobs if job not in started]
    if known:
        chunks += await _continue(session, known, edges)
    if chunks:
        numbers, places, parts = zip(*chunks, strict=True)
        await session.execute("append_dependents", integers(numbers), integers(places), parts)


async def _continue(
    session: Session, jobs: Sequence[int], edges: Mapping[int, Sequence[int]]
) -> list[tuple[int, int, str]]:
    """Locks existing lists, and divides the new edges into what fills their last chunks and what
    follows.
    """
    await session.fetch("lock_dependents", integers(jobs))
    ends = await session.fetch("dependents_ends", integers(jobs))
    return [chunk for job, last, length in ends for chunk in _split(job, last, length, edges[job])]


def _split(
    job: int, chunk: int, length: int, edges: Sequence[int]
) -> Iterator[tuple[int, int, str]]:
    """Yields the rest of chunk number `chunk`, which holds `length` edges, and then further
    chunks.
    """
    start = 0
    while start < len(edges):
        end = start + CHUNK - length
        if end > start:
            yield job, chunk, integers(edges[start:end])
        start, chunk, length = end, chunk + 1, 0

"""The roles as PostgreSQL implements them."""

from collections.abc import Mapping, Sequence

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.events import Event
from windlass.domain.rows.gaps import Gap, Mark
from windlass.domain.rows.records import RateRow, WorkflowRow
from windlass.store.postgres.session import Session, integers, spread
from windlass.store.sql.catalog import Catalog
from windlass.store.sql.log import Log
from windlass.store.sql.placement import Limits, Placement, RateKey
from windlass.store.sql.retention import Retention
from windlass.store.sql.workflows import Workflows, workflows_of

Name = tuple[str, str]
WIDTH = len(STATE_BY_CODE)


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

    async def of_job(self, job: int) -> list[Event]:
        return await self._session.rows(Event, "events_of_job", job)

    async def bump(self, deltas: Mapping[str, int]) -> None:
        if deltas:
            names, values = zip(*sorted(deltas.items()), strict=True)
            await self._session.execute("bump_counters", names, integers(values))

    async def fold(self) -> None:
        await self._session.execute("fold_counters")


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

    async def remove_jobs(self, ids: Sequence[int]) -> None:
        if ids:
            await self._session.execute("remove_jobs", self._session.ids(ids))

    async def remove_workflows(self, ids: Sequence[int]) -> None:
        if ids:
            await self._session.execute("remove_workflows", self._session.ids(ids))

    async def forget_commits(self) -> None:
        await self._session.execute("forget_commits")

"""How roles differ on SQLite."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.events import BaselineKind, Event
from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import RateRow, WorkflowRow
from windlass.store.sql.catalog import Catalog
from windlass.store.sql.limits import Limits
from windlass.store.sql.log import Log
from windlass.store.sql.placement import Placement, RateKey
from windlass.store.sql.retention import Retention
from windlass.store.sql.workflows import Workflows
from windlass.store.sqlite.history import events_of_job
from windlass.store.sqlite.session import SqliteSession

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


class SqliteCatalog(Catalog):
    """Implements `Catalog` on SQLite."""

    __slots__ = ()
    _session: SqliteSession

    async def follow_timeline(self) -> None:
        """Knows of no timelines."""

    async def jump_ids(self, now: int) -> Gap:
        newest = (await self._session.fetch("newest_ids"))[0]
        return Gap(self._session.sequences.jump(max(newest), now), now, *newest)


class SqlitePlacement(Placement):
    """Implements `Placement` on SQLite."""

    __slots__ = ()

    async def lock_rates(self, keys: Sequence[RateKey], wait: bool) -> dict[RateKey, RateRow]:
        """Reads them one by one: a claim asks for few, and there is nothing to lock."""
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
    """Implements `Log` on SQLite."""

    __slots__ = ()
    _session: SqliteSession

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
        """Always gets the turn: SQLite runs one transaction at a time."""
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
        """It keeps none: no answer is lost."""

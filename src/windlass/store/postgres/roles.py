"""What roles do otherwise on PostgreSQL."""

from collections.abc import Sequence

from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import RateRow
from windlass.ports.store.fleet.placement import RateKey
from windlass.store.sql.catalog import Catalog
from windlass.store.sql.placement import Placement


class PostgresCatalog(Catalog):
    """`CatalogWrite`."""

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
    """`PlacementWrite`."""

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
                # Without waiting there is none either for another transaction's new row.
                await self._session.many("add_rates", "oo", new)
                rows = await self._session.rows(RateRow, lock, *names)
        return {(row.namespace, row.key): row for row in rows}

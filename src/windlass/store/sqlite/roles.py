"""What roles do otherwise on SQLite."""

from collections.abc import Sequence

from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import RateRow
from windlass.ports.store.fleet.placement import RateKey
from windlass.store.sql.catalog import Catalog
from windlass.store.sql.placement import Placement
from windlass.store.sqlite.session import SqliteSession


class SqliteCatalog(Catalog):
    """`CatalogWrite`."""

    __slots__ = ()
    _session: SqliteSession

    async def follow_timeline(self) -> None:
        """Knows of no timelines."""

    async def jump_ids(self, now: int) -> Gap:
        newest = (await self._session.fetch("newest_ids"))[0]
        return Gap(self._session.sequences.jump(max(newest), now), now, *newest)


class SqlitePlacement(Placement):
    """`PlacementWrite`."""

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

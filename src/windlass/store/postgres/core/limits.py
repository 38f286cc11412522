"""Rows of `limits`: concurrency keys."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.records import LimitRow
from windlass.store.postgres.columns import ascending, integers
from windlass.store.postgres.session import Session

Name = tuple[str, str]


class PostgresLimits:
    """`LimitsWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

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
            # All of them, so that the caller's locks come in one order.
            both = sorted((limit, wanted[name]) for name, (limit, _) in known.items())
            columns = map(integers, zip(*both, strict=True))
            await self._session.execute("set_limits", *columns)
        return {name: known[name][0] for name in wanted}

    async def lock(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return await self._rows("lock_limits", ids)

    async def read(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return await self._rows("read_limits", ids)

    async def lock_free(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        return await self._rows("lock_free_limits", ids)

    async def _rows(self, query: str, ids: Sequence[int]) -> dict[int, LimitRow]:
        if not ids:
            return {}
        rows = await self._session.fetch(query, ascending(ids))
        return {row[0]: LimitRow._make(row) for row in rows}

    async def parked(self) -> list[int]:
        return [row[0] for row in await self._session.fetch("parked_limits")]

    async def bump(self, deltas: Mapping[int, int]) -> None:
        if deltas:
            columns = map(integers, zip(*sorted(deltas.items()), strict=True))
            await self._session.execute("bump_limits", *columns)

    async def _find(self, names: Mapping[Name, int]) -> dict[Name, tuple[int, int]]:
        rows = await self._session.fetch("find_limits", *_names(names))
        return {(namespace, key): (limit, most) for namespace, key, limit, most in rows}


def _names(names: Mapping[Name, int]) -> tuple[list[str], list[str]]:
    return [namespace for namespace, _ in names], [key for _, key in names]


def _values(names: Mapping[Name, int]) -> str:
    return integers(list(names.values()))

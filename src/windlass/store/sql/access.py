"""Rows of `tokens` and `codes`."""

from collections.abc import Mapping
from typing import Any

from windlass.domain.access.tokens import Code, Token
from windlass.store.sql.session import Role, Session


class Access(Role):
    """`AccessWrite`."""

    __slots__ = ()

    async def insert(self, row: Token) -> int:
        values = [*row[1:4], self._session.pack(row.namespaces), *row[5:]]
        return await self._session.insert("insert_token", values)

    async def by_digest(self, digest: str) -> Token | None:
        rows = tokens_of(self._session, await self._session.fetch("token_by_digest", digest))
        return rows[0] if rows else None

    async def by_id(self, token: int) -> Token | None:
        rows = tokens_of(self._session, await self._session.fetch("token_by_id", token))
        return rows[0] if rows else None

    async def all(self) -> list[Token]:
        return tokens_of(self._session, await self._session.fetch("all_tokens"))

    async def revoke(self, token: int, at: int) -> bool:
        return bool(await self._session.fetch("revoke_token", token, at))

    async def expire(self, token: int, at: int) -> bool:
        return bool(await self._session.fetch("expire_token", token, at))

    async def touch(self, uses: Mapping[int, int]) -> None:
        await self._session.many("touch_tokens", "ii", sorted(uses.items()))

    async def trim_sessions(self, before: int, count: int) -> int:
        return await self._session.execute("trim_sessions", before, count)

    async def remove_of_worker(self, worker: int) -> int:
        return await self._session.execute("remove_tokens_of_worker", worker)

    async def end_sessions(self, worker: int) -> None:
        await self._session.execute("end_sessions", worker)

    async def lock(self) -> None:
        await self._session.lock("lock_tokens")

    async def add_code(self, row: Code) -> None:
        await self._session.execute("insert_code", *row)

    async def trim_codes(self, before: int, count: int) -> int:
        return await self._session.execute("trim_codes", before, count)

    async def use_code(self, digest: str, now: int) -> Code | None:
        return await self._session.row(Code, "use_code", digest, now)

    async def use_link(self, digest: str, now: int) -> Code | None:
        return await self._session.row(Code, "use_link", digest, now)


def tokens_of(session: Session, rows: list[Any]) -> list[Token]:
    """Returns tokens from rows whose fifth column is the list of namespaces."""
    unpack = session.unpack_texts
    return [Token._make((*row[:4], unpack(row[4]), *row[5:])) for row in rows]

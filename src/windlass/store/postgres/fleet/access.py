"""Rows of `tokens` and `codes`."""

from collections.abc import Mapping

from windlass.domain.access.tokens import Code, Token
from windlass.store.postgres.columns import integers
from windlass.store.postgres.session import Rows, Session


class PostgresAccess:
    """`AccessWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def insert(self, row: Token) -> int:
        token: int = await self._session.fetch_value("insert_token", *row[1:])
        return token

    async def by_digest(self, digest: str) -> Token | None:
        rows = tokens_of(await self._session.fetch("token_by_digest", digest))
        return rows[0] if rows else None

    async def by_id(self, token: int) -> Token | None:
        rows = tokens_of(await self._session.fetch("token_by_id", token))
        return rows[0] if rows else None

    async def all(self) -> list[Token]:
        return tokens_of(await self._session.fetch("all_tokens"))

    async def revoke(self, token: int, at: int) -> bool:
        return bool(await self._session.fetch("revoke_token", token, at))

    async def expire(self, token: int, at: int) -> bool:
        return bool(await self._session.fetch("expire_token", token, at))

    async def touch(self, uses: Mapping[int, int]) -> None:
        if uses:
            ids = sorted(uses)
            columns = integers(ids), integers([uses[token] for token in ids])
            await self._session.execute("touch_tokens", *columns)

    async def trim_sessions(self, before: int, count: int) -> int:
        status = await self._session.execute("trim_sessions", before, count)
        return int(status.rpartition(" ")[2])

    async def remove_of_worker(self, worker: int) -> int:
        status = await self._session.execute("remove_tokens_of_worker", worker)
        return int(status.rpartition(" ")[2])

    async def end_sessions(self, worker: int) -> None:
        await self._session.execute("end_sessions", worker)

    async def lock(self) -> None:
        await self._session.execute("lock_tokens")

    async def add_code(self, row: Code) -> None:
        await self._session.execute("insert_code", *row)

    async def trim_codes(self, before: int, count: int) -> int:
        status = await self._session.execute("trim_codes", before, count)
        return int(status.rpartition(" ")[2])

    async def use_code(self, digest: str, now: int) -> Code | None:
        rows = await self._session.fetch("use_code", digest, now)
        return Code._make(rows[0]) if rows else None

    async def use_link(self, digest: str, now: int) -> Code | None:
        rows = await self._session.fetch("use_link", digest, now)
        return Code._make(rows[0]) if rows else None


def tokens_of(rows: Rows) -> list[Token]:
    return [Token._make((*row[:4], tuple(row[4]), *row[5:])) for row in rows]

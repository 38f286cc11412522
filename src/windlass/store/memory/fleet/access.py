"""Rows of `tokens` and `codes`."""

from collections.abc import Mapping

from windlass.domain.access.tokens import SESSION, Code, Token
from windlass.store.memory.tables import Tables


class MemoryAccess:
    """`AccessWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def insert(self, row: Token) -> int:
        (token,) = self._tables.number("token")
        self._tables.token_ids.insert(row.digest, token)
        self._tables.tokens.insert(token, row._replace(id=token))
        return token

    async def by_digest(self, digest: str) -> Token | None:
        token = self._tables.token_ids.get(digest)
        return None if token is None else self._tables.tokens[token]

    async def by_id(self, token: int) -> Token | None:
        return self._tables.tokens.get(token)

    async def all(self) -> list[Token]:
        return sorted(self._tables.tokens)

    async def revoke(self, token: int, at: int) -> bool:
        row = self._tables.tokens.get(token)
        if row is None or row.revoked_at:
            return False
        self._tables.tokens.put(token, row._replace(revoked_at=at))
        return True

    async def expire(self, token: int, at: int) -> bool:
        row = self._tables.tokens.get(token)
        if row is None or row.revoked_at or 0 < row.expires_at <= at:
            return False
        self._tables.tokens.put(token, row._replace(expires_at=at))
        return True

    async def touch(self, uses: Mapping[int, int]) -> None:
        for token, at in uses.items():
            row = self._tables.tokens.get(token)
            if row is not None and row.last_used_at < at:
                self._tables.tokens.put(token, row._replace(last_used_at=at))

    async def trim_sessions(self, before: int, count: int) -> int:
        old = [
            row for row in self._tables.tokens
            if row.kind == SESSION and row.expires_at < before
        ]  # fmt: skip
        old.sort(key=lambda row: (row.expires_at, row.id))
        for row in old[:count]:
            self._tables.tokens.pop(row.id)
            self._tables.token_ids.pop(row.digest)
        return min(len(old), count)

    async def remove_of_worker(self, worker: int) -> int:
        mine = [row for row in self._tables.tokens if row.worker == worker > 0]
        for row in mine:
            self._tables.tokens.pop(row.id)
            self._tables.token_ids.pop(row.digest)
        return len(mine)

    async def end_sessions(self, worker: int) -> None:
        mine = [row for row in self._tables.tokens if row.worker == worker > 0 and row.incarnation]
        for row in mine:
            self._tables.tokens.pop(row.id)
            self._tables.token_ids.pop(row.digest)

    async def lock(self) -> None:
        """Does nothing: nobody else writes during a transaction."""

    async def add_code(self, row: Code) -> None:
        self._tables.codes.insert(row.digest, row)

    async def trim_codes(self, before: int, count: int) -> int:
        old = sorted(
            (row for row in self._tables.codes if row.expires_at < before),
            key=lambda row: (row.expires_at, row.digest),
        )
        for row in old[:count]:
            self._tables.codes.pop(row.digest)
        return min(len(old), count)

    async def use_code(self, digest: str, now: int) -> Code | None:
        return self._use(digest, now, of_token=False)

    async def use_link(self, digest: str, now: int) -> Code | None:
        return self._use(digest, now, of_token=True)

    def _use(self, digest: str, now: int, of_token: bool) -> Code | None:
        row = self._tables.codes.get(digest)
        if row is None or row.used_at or row.expires_at <= now or bool(row.token) != of_token:
            return None
        used = row._replace(used_at=now)
        self._tables.codes.put(digest, used)
        return used

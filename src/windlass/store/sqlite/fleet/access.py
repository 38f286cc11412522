"""Rows of `tokens` and `codes`."""

from collections.abc import Mapping

import apsw

from windlass.domain.access.tokens import Code, Token
from windlass.store.sqlite.rows import as_code, as_token, token_row
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES


class SqliteAccess:
    """`AccessWrite` over one connection."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._sequences = sequences

    async def insert(self, row: Token) -> int:
        (token,) = self._sequences.take("token")
        self._execute(QUERIES["insert_token"], (token, *token_row(row)[1:]))
        return token

    async def by_digest(self, digest: str) -> Token | None:
        rows = self._execute(QUERIES["token_by_digest"], (digest,)).fetchall()
        return as_token(rows[0]) if rows else None

    async def by_id(self, token: int) -> Token | None:
        rows = self._execute(QUERIES["token_by_id"], (token,)).fetchall()
        return as_token(rows[0]) if rows else None

    async def all(self) -> list[Token]:
        return list(map(as_token, self._execute(QUERIES["all_tokens"])))

    async def revoke(self, token: int, at: int) -> bool:
        return bool(self._execute(QUERIES["revoke_token"], (token, at)).fetchall())

    async def expire(self, token: int, at: int) -> bool:
        return bool(self._execute(QUERIES["expire_token"], (token, at)).fetchall())

    async def touch(self, uses: Mapping[int, int]) -> None:
        self._connection.executemany(QUERIES["touch_token"], sorted(uses.items()))

    async def trim_sessions(self, before: int, count: int) -> int:
        self._execute(QUERIES["trim_sessions"], (before, count))
        return self._connection.changes()

    async def remove_of_worker(self, worker: int) -> int:
        self._execute(QUERIES["remove_tokens_of_worker"], (worker,))
        return self._connection.changes()

    async def end_sessions(self, worker: int) -> None:
        self._execute(QUERIES["end_sessions"], (worker,))

    async def lock(self) -> None:
        """Does nothing: nobody else writes during a transaction."""

    async def add_code(self, row: Code) -> None:
        self._execute(QUERIES["insert_code"], row)

    async def trim_codes(self, before: int, count: int) -> int:
        self._execute(QUERIES["trim_codes"], (before, count))
        return self._connection.changes()

    async def use_code(self, digest: str, now: int) -> Code | None:
        rows = self._execute(QUERIES["use_code"], (digest, now)).fetchall()
        return as_code(rows[0]) if rows else None

    async def use_link(self, digest: str, now: int) -> Code | None:
        rows = self._execute(QUERIES["use_link"], (digest, now)).fetchall()
        return as_code(rows[0]) if rows else None

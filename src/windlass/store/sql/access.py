"""Rows of `tokens`, `codes` and `audit`: who may do what, and who did it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from windlass.domain.access.audit import AuditRow
from windlass.domain.access.tokens import Code, Token
from windlass.store.sql.session import Role, Session, query

NEWEST: Final = 2**63 - 1  # above every id


class Access(Role):
    """Reads and writes rows of `tokens` and `codes`. Digests are unique."""

    __slots__ = ()

    async def by_digest(self, digest: str) -> Token | None:
        rows = tokens_of(self._session, await self._session.fetch("token_by_digest", digest))
        return rows[0] if rows else None

    async def by_id(self, token: int) -> Token | None:
        rows = tokens_of(self._session, await self._session.fetch("token_by_id", token))
        return rows[0] if rows else None

    async def all(self) -> list[Token]:
        """Returns every token, revoked ones too, ascending by id."""
        return tokens_of(self._session, await self._session.fetch("all_tokens"))

    async def insert(self, row: Token) -> int:
        """Inserts with a fresh id (the row's own `id` is ignored) and returns its id."""
        values = [*row[1:4], self._session.pack(row.namespaces), *row[5:]]
        return await self._session.insert("insert_token", values)

    revoke = query("revoke_token", int, int).found()
    """Revokes a token at a time; returns False if it is unknown or was already revoked."""

    expire = query("expire_token", int, int).found()
    """Makes a token expire at an earlier time; returns False if it is unknown, revoked, or expires
    earlier anyway.
    """

    async def touch(self, uses: Mapping[int, int]) -> None:
        """Records when tokens were last used, by id; never moves a time back."""
        await self._session.many("touch_tokens", "ii", sorted(uses.items()))

    trim_sessions = query("trim_sessions", int, int).count()
    """Removes sessions that expired before a time, up to a number; returns how many."""

    remove_of_worker = query("remove_tokens_of_worker", int).count()
    """Removes the tokens of a worker that is gone for good; returns how many."""

    end_sessions = query("end_sessions", int).run()
    """Removes the tokens of a worker's incarnations; the secret it enrols with stays."""

    lock = query("lock_tokens").lock()
    """Keeps others from adding tokens until this transaction ends."""

    add_code = query("insert_code").record(Code)

    trim_codes = query("trim_codes", int, int).count()
    """Removes codes that expired before a time, up to a number; returns how many."""

    use_code = query("use_code", str, int).row(Code)
    """Uses up an enrolment code, given by digest and the time now, and returns it.

    Only one caller gets it, and only before it expires.
    """

    use_link = query("use_link", str, int).row(Code)
    """Does the same with a code that opens a session."""


def tokens_of(session: Session, rows: list[Any]) -> list[Token]:
    """Returns tokens from rows whose fifth column is the list of namespaces."""
    unpack = session.unpack_texts
    return [Token._make((*row[:4], unpack(row[4]), *row[5:])) for row in rows]


class Audit(Role):
    """Reads and writes rows of `audit`."""

    __slots__ = ()

    async def read(
        self, after: int, since: int, namespaces: Sequence[str], count: int
    ) -> list[AuditRow]:
        """Returns at most `count` rows above id `after` and not before `since`, ascending.

        `namespaces` limits the rows to these.
        """
        wanted = self._session.texts(namespaces) if namespaces else None
        return await self._session.rows(AuditRow, "read_audit", after, since, wanted, count)

    async def recent(self, before: int, count: int) -> list[AuditRow]:
        """Returns at most `count` rows below id `before` (0: all), descending."""
        return await self._session.rows(AuditRow, "recent_audit", before or NEWEST, count)

    async def append(self, rows: Sequence[AuditRow]) -> None:
        """Appends with fresh ids (the rows' own are ignored); readers see them in order."""
        if not rows:
            return
        # Servers take turns, so that ids become visible in order.
        await self._session.lock("lock_audit")
        values = [row[1:] for row in rows]
        await self._session.number_many("audit", "insert_audit", "iiiiooooooooo", values)

    trim = query("trim_audit", int, int).count()
    """Removes the oldest rows from before a time, up to a number; returns how many."""

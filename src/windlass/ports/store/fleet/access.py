"""The role of a transaction that keeps tokens and enrolment codes."""

from collections.abc import Mapping
from typing import Protocol

from windlass.domain.access.tokens import Code, Token


class AccessRead(Protocol):
    """Reads rows of `tokens` and `codes`. Digests are unique."""

    async def by_digest(self, digest: str) -> Token | None: ...

    async def by_id(self, token: int) -> Token | None: ...

    async def all(self) -> list[Token]:
        """Returns every token, revoked ones too, ascending by id."""
        ...


class AccessWrite(AccessRead, Protocol):
    """Reads and writes rows of `tokens` and `codes`. Digests are unique."""

    async def insert(self, row: Token) -> int:
        """Inserts with a fresh id (the row's own `id` is ignored) and returns its id."""
        ...

    async def revoke(self, token: int, at: int) -> bool:
        """Returns whether this call revoked it: False if it is unknown or was revoked before."""
        ...

    async def expire(self, token: int, at: int) -> bool:
        """Lets a token end earlier; False if it is unknown, revoked or ends before anyway."""
        ...

    async def touch(self, uses: Mapping[int, int]) -> None:
        """Notes when tokens were last used, by id; a later use that is known stays."""
        ...

    async def trim_sessions(self, before: int, count: int) -> int:
        """Removes at most so many sessions that expired before this time; returns how many."""
        ...

    async def remove_of_worker(self, worker: int) -> int:
        """Removes the tokens of a worker that is gone for good; returns how many."""
        ...

    async def end_sessions(self, worker: int) -> None:
        """Removes the tokens of a worker's incarnations; the secret it enrols with stays."""
        ...

    async def lock(self) -> None:
        """Keeps others from adding tokens until this transaction ends."""
        ...

    async def add_code(self, row: Code) -> None: ...

    async def trim_codes(self, before: int, count: int) -> int:
        """Removes at most so many codes that expired before this time; returns how many."""
        ...

    async def use_code(self, digest: str, now: int) -> Code | None:
        """Uses an enrolment code up and returns it.

        Exactly one caller gets it, and only before it expires.
        """
        ...

    async def use_link(self, digest: str, now: int) -> Code | None:
        """Does the same with a code that opens a session."""
        ...

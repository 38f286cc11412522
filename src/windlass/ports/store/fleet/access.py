"""The role of a transaction that keeps tokens and enrolment codes."""

from typing import Protocol

from windlass.domain.access import Code, Token


class AccessRead(Protocol):
    """Reads rows of `tokens` and `codes`. Digests are unique."""

    async def by_digest(self, digest: str) -> Token | None: ...

    async def all(self) -> list[Token]:
        """Every token, revoked ones too, ascending by id."""
        ...


class AccessWrite(AccessRead, Protocol):
    """Reads and writes rows of `tokens` and `codes`. Digests are unique."""

    async def insert(self, row: Token) -> int:
        """Insert with a fresh id (the row's own `id` is ignored) and answer it."""
        ...

    async def revoke(self, token: int, at: int) -> bool:
        """Whether this call revoked it: False if it is unknown or was revoked before."""
        ...

    async def remove_of_worker(self, worker: int) -> int:
        """Remove the tokens of a worker that is gone for good; how many."""
        ...

    async def add_code(self, row: Code) -> None: ...

    async def trim_codes(self, before: int, count: int) -> int:
        """Remove at most so many codes that expired before this time; how many."""
        ...

    async def use_code(self, digest: str, now: int) -> bool:
        """Use a code up: True for exactly one caller, and only before it expires."""
        ...

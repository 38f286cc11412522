"""Finds out who calls: every request but the health checks presents a token."""

from collections.abc import Iterable

from windlass.domain.roles import Identity
from windlass.engine.access import Access


async def identify(access: Access, headers: Iterable[tuple[bytes, bytes]]) -> Identity | None:
    """Returns the owner of the bearer token; None without a valid one."""
    token = bearer(headers)
    return None if token is None else await access.identify(token)


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Returns the token of the Authorization header."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            if scheme.lower() == "bearer" and token.strip():
                return token.strip()
    return None

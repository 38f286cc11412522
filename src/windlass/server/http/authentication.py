"""Finds out who calls: every request but the health checks presents a token."""

from collections.abc import Iterable


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Returns the token of the Authorization header."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            if scheme.lower() == "bearer" and token.strip():
                return token.strip()
    return None

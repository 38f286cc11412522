"""Finds out who calls: every request but the health checks presents a token or a session."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from windlass.api.errors import Forbidden
from windlass.domain.access.tokens import SESSION_PREFIX
from windlass.server.http.asgi import Scope
from windlass.server.http.origin import SAFE_METHODS

COOKIE: Final = "windlass_session"
SECURE_COOKIE: Final = f"__Host-{COOKIE}"  # over TLS; browsers take it from nobody else


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Returns the token of the Authorization header."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            if scheme.lower() == "bearer" and token.strip():
                return token.strip()
    return None


def cookie_of(header: str, name: str) -> str:
    """Returns the value of a cookie; empty if there is none.

    Ours need no quotes. The parser of the standard library takes seconds for a long header.
    """
    for pair in header.split(";"):
        found, _, value = pair.partition("=")
        if found.strip() == name:
            return value.strip()
    return ""


def session_of(header: str) -> str:
    """Returns the secret of the session in a `Cookie` header; empty if there is none.

    A token in a cookie does not count: nobody has checked that it may be there.
    """
    secret = cookie_of(header, SECURE_COOKIE) or cookie_of(header, COOKIE)
    return secret if secret.startswith(SESSION_PREFIX) else ""


def with_session(scope: Scope, public_origin: str) -> Scope:
    """Returns a request without a token with the session of its cookie as token.

    Browsers send cookies whichever page asks, so a change needs the `Origin` of our own page:
    that of the address which was called, or the `public_origin`.
    """
    headers = dict(scope["headers"])
    secret = session_of(headers.get(b"cookie", b"").decode("latin-1"))
    if not secret:
        return scope
    if scope["method"] not in SAFE_METHODS and not _is_own(headers, public_origin):
        raise Forbidden("a change with a session needs the Origin of this server's own page")
    presented = (b"authorization", b"Bearer " + secret.encode("latin-1", "replace"))
    return {**scope, "headers": [*scope["headers"], presented]}


def _is_own(headers: Mapping[bytes, bytes], public_origin: str) -> bool:
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    if not origin:
        return False
    if origin == public_origin:
        return True
    try:
        called = urlsplit(origin).netloc
    except ValueError:
        return False
    return called != "" and called == headers.get(b"host", b"").decode("latin-1").lower()

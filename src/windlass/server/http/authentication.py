"""Finds out who calls: every request but the health checks presents a token or a session."""

from collections.abc import Iterable

from windlass.server.http.asgi import Scope
from windlass.server.http.origin import SAFE_METHODS
from windlass.server.sign_in.callers import SignedCallers


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


def with_session(scope: Scope, callers: SignedCallers) -> Scope:
    """Returns the request with the session of its cookie as token, unless it presents one.

    Browsers send cookies whichever page asks, so a change needs the `Origin` of our own page.
    """
    name = callers.cookie
    if not name or bearer(scope["headers"]) is not None:
        return scope
    headers = dict(scope["headers"])
    secret = cookie_of(headers.get(b"cookie", b"").decode("latin-1"), name)
    if not secret:
        return scope
    if scope["method"] not in SAFE_METHODS:
        callers.check_origin(headers.get(b"origin"))
    presented = (b"authorization", b"Bearer " + secret.encode("latin-1", "replace"))
    return {**scope, "headers": [*scope["headers"], presented]}

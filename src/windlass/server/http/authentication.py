"""Finds out who calls: every request but the health checks presents a token or a session."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from windlass.domain.access.tokens import SESSION_PREFIX
from windlass.operations.dispatch.errors import Forbidden
from windlass.server.http.asgi import Scope
from windlass.server.http.origin import SAFE_METHODS

COOKIE: Final = "windlass_session"
SECURE: Final = "__Host-"  # over TLS; browsers take such a cookie from nobody else


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


def session_cookie(headers: Mapping[bytes, bytes], public_origin: str, is_secure: bool) -> str:
    """Returns the name of the cookie that holds a session.

    Browsers keep cookies by host, not by port: the port in the name keeps servers of one machine
    apart. It is that of the `public_origin`, if there is one, since proxies change the `Host`.
    """
    port = _port(public_origin or "//" + headers.get(b"host", b"").decode("latin-1"))
    name = COOKIE if port is None else f"{COOKIE}_{port}"
    return SECURE + name if is_secure else name


def session_of(headers: Mapping[bytes, bytes], public_origin: str) -> str:
    """Returns the secret of the session in the cookie of a request; empty if there is none.

    A token in a cookie does not count: nobody has checked that it may be there.
    """
    header = headers.get(b"cookie", b"").decode("latin-1")
    if COOKIE not in header:
        return ""
    names = (session_cookie(headers, public_origin, is_secure) for is_secure in (True, False))
    secret = next(filter(None, (cookie_of(header, name) for name in names)), "")
    return secret if secret.startswith(SESSION_PREFIX) else ""


def with_session(scope: Scope, public_origin: str) -> Scope:
    """Returns a request without a token with the session of its cookie as token.

    Browsers send cookies whichever page asks, so a change needs the `Origin` of our own page:
    that of the address which was called, or the `public_origin`.
    """
    headers = dict(scope["headers"])
    secret = session_of(headers, public_origin)
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


def _port(address: str) -> int | None:
    """Returns the port of an address; None if it names none, or is no address."""
    try:
        return urlsplit(address).port
    except ValueError:
        return None

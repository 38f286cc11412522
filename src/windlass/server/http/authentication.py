"""Finds out who calls, and refuses what a web page of another site could make a browser send.

Every request but the health checks presents a token or a session.
"""

import socket
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from windlass.domain.access.tokens import SESSION_PREFIX
from windlass.domain.values.addresses import is_address, is_loopback
from windlass.operations.dispatch.call import BINARY, JSON
from windlass.operations.dispatch.errors import Forbidden
from windlass.server.http.asgi import Scope
from windlass.server.http.replies import UnsupportedMedia

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

SAME_SITE: Final = (b"same-origin", b"none")  # what browsers say of requests of our own
OTHER_SITES: Final = "requests from other sites' pages are refused"

Headers = Mapping[bytes, bytes]

COOKIE: Final = "windlass_session"
SECURE: Final = "__Host-"  # over TLS; browsers take such a cookie from nobody else


class Hosts:
    """The names under which a server may be addressed: `names`, and those of loopback.

    A page whose name resolves to this machine (DNS rebinding) reaches a server that its author
    cannot reach. So requests of pages need a name that is known; an `exposed` server, which others
    reach as well, is also known by its addresses and the machine's name. Other programs may call
    an exposed server by any name, unless `names` were given.
    """

    def __init__(self, names: Iterable[str], exposed: bool = False) -> None:
        given = frozenset(name.lower() for name in names)
        own = {socket.gethostname().lower()} if exposed else set()
        self._names = given | own
        self._exposed = exposed
        self._any_name = exposed and not given
        self._is_known = lru_cache(256)(self._check_name)

    def check(self, headers: Headers, is_secure: bool = False) -> None:
        """Refuses a foreign `Host`, and an `Origin` that is not this server.

        A server that is called by https (`is_secure`) is another one than that of http: others on
        the way can write pages of the latter.
        """
        host = headers.get(b"host", b"").decode("latin-1").lower()
        origin = headers.get(b"origin")
        site = headers.get(b"sec-fetch-site")
        by_program = origin is None and site is None
        if not (self._any_name and by_program) and not self._is_known(host):
            raise Forbidden(
                f"this server is not known as {_name_of(host)[:100]!r}: address it as "
                "localhost, or start it with --allowed-host"
            )
        if site is not None and site.lower() not in SAME_SITE:
            raise Forbidden(OTHER_SITES)
        if origin is None:
            return
        source = _authority_of(origin.decode("latin-1").lower())
        if is_secure and not origin.lower().startswith(b"https://"):
            raise Forbidden(OTHER_SITES)
        if not source or (source != host and _name_of(source) not in self._names):
            raise Forbidden(OTHER_SITES)

    def _check_name(self, host: str) -> bool:
        name = _name_of(host)
        if name in self._names or is_loopback(name):
            return True
        return self._exposed and is_address(name)


def came_by_https(scope: Mapping[str, Any], headers: Headers) -> bool:
    """Returns whether the page that called was reached by https, perhaps through a proxy."""
    forwarded = headers.get(b"x-forwarded-proto", b"").strip().lower()
    return scope.get("scheme") == "https" or forwarded == b"https"


def check_media_type(headers: Headers, raw: bool) -> None:
    """Refuses bodies that are neither JSON nor, on routes that take them, raw bytes.

    A browser sends text and forms to any site without asking; JSON and raw bytes it does not.
    """
    if headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers:
        return
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if kind != JSON and not (raw and kind == BINARY):
        raise UnsupportedMedia(BINARY if raw else JSON, kind or "nothing")


def _authority_of(origin: str) -> str:
    """Returns host and port of an origin; empty for one that is not an address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _name_of(host: str) -> str:
    """Returns a host without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


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

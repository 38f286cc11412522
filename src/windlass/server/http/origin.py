"""Refuses requests that a web page of another site could make a browser send."""

import socket
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from windlass.domain.values.addresses import is_address, is_loopback
from windlass.operations.dispatch.answers import BINARY, JSON
from windlass.operations.dispatch.errors import Forbidden
from windlass.server.http.replies import UnsupportedMedia

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

SAME_SITE: Final = (b"same-origin", b"none")  # what browsers say of requests of our own
OTHER_SITES: Final = "requests from pages of other sites are refused"

Headers = Mapping[bytes, bytes]


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

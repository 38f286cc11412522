"""Refuses requests that a web page of another site could make a browser send."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from windlass.api.errors import Forbidden
from windlass.domain.values.addresses import is_loopback
from windlass.server.http.errors import UnsupportedMedia
from windlass.server.http.replies import BINARY, JSON

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

Headers = Mapping[bytes, bytes]


class Hosts:
    """The names under which a server may be addressed; `None` accepts every name.

    A server on loopback is protected by being out of reach. A web page whose name resolves to
    127.0.0.1 (DNS rebinding) would be within reach, so the name is checked there.
    """

    def __init__(self, names: Iterable[str] | None) -> None:
        self._names = None if names is None else frozenset(name.lower() for name in names)
        self._is_known = lru_cache(256)(self._check_name)

    def check(self, headers: Headers) -> None:
        """Refuses a foreign `Host`, and an `Origin` that is not this server."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not self._is_known(host):
            raise Forbidden(
                f"this server is not known as {_name_of(host)[:100]!r}: address it as "
                "localhost, or start it with --allowed-host"
            )
        origin = headers.get(b"origin")
        if origin is None:
            return
        source = urlsplit(origin.decode("latin-1").lower()).netloc
        if not source or (source != host and _name_of(source) not in (self._names or ())):
            raise Forbidden("requests from pages of other sites are refused")

    def _check_name(self, host: str) -> bool:
        if self._names is None:
            return True
        name = _name_of(host)
        return name in self._names or is_loopback(name)


def check_media_type(headers: Headers, raw: bool) -> None:
    """Refuses bodies that are neither JSON nor, on routes that take them, raw bytes.

    A browser sends text and forms to any site without asking; JSON and raw bytes it does not.
    """
    if headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers:
        return
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if kind != JSON and not (raw and kind == BINARY):
        raise UnsupportedMedia(BINARY if raw else JSON, kind or "nothing")


def _name_of(host: str) -> str:
    """Returns a host without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""

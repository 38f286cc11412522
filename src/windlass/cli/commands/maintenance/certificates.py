"""Looks at the certificate of a server."""

import socket
import ssl
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from windlass.clock import RealClock
from windlass.domain.values.quantities import counted, format_moment

PATIENCE_SECONDS: Final = 5.0
DAY_MS: Final = 86_400_000
SOON_DAYS: Final = 30  # to be renewed
URGENT_DAYS: Final = 7
HTTPS_PORT: Final = 443


class Expiry(NamedTuple):
    """How urgent it is to renew a certificate, and why."""

    state: Literal["ok", "note", "problem"]
    detail: str


def server_expiry(server: str, trust: ssl.SSLContext) -> Expiry | None:
    """Returns when the certificate at an https address expires; None if nobody tells."""
    parts = urlsplit(server)
    if parts.scheme != "https" or parts.hostname is None:
        return None
    where = (parts.hostname, parts.port or HTTPS_PORT)
    try:
        with (
            socket.create_connection(where, timeout=PATIENCE_SECONDS) as plain,
            trust.wrap_socket(plain, server_hostname=parts.hostname) as secured,
        ):
            found = secured.getpeercert() or {}
    except OSError:
        return None  # asking for something else says why
    until = found.get("notAfter")
    return judge_expiry(until, RealClock().now_ms()) if isinstance(until, str) else None


def judge_expiry(not_after: str, now_ms: int) -> Expiry:
    """Returns how urgent it is to renew a certificate that is valid until `not_after`."""
    until_ms = int(ssl.cert_time_to_seconds(not_after)) * 1000
    days = (until_ms - now_ms) // DAY_MS
    detail = f"expires in {counted(days, 'day')}, {format_moment(until_ms)}"
    if days < 0:
        return Expiry("problem", f"expired on {format_moment(until_ms)}: renew it")
    if days < URGENT_DAYS:
        return Expiry("problem", f"{detail}: renew it")
    return Expiry("note" if days < SOON_DAYS else "ok", detail)

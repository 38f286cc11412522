"""Webhooks: which addresses they may reach, how we sign them, and when we retry them."""

import hashlib
import hmac
import ipaddress
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from windlass.domain.values.addresses import Address, Network, is_in
from windlass.domain.values.errors import InvalidInput

URL_LIMIT: Final = 2_000
TRIES: Final = 12
FIRST_PAUSE_MS: Final = 5_000
MAX_PAUSE_MS: Final = 600_000

# IPv6 prefixes that embed an IPv4 address, in the last 32 bits or in bits 16 to 48.
_TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b::/96")
_LOCALLY_TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


def check_url(url: str, field: str) -> None:
    """Raises `InvalidInput` for an address that no webhook can be sent to."""
    expected = "an address such as https://example.com/hook, without a user and a fragment"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidInput(field, expected, url) from None
    plain = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    odd = parts.username is not None or parts.password is not None or bool(parts.fragment)
    if not plain or odd or len(url) > URL_LIMIT or not url.isascii() or not url.isprintable():
        raise InvalidInput(field, expected, url)
    if any(sign in url for sign in ' "<>\\^`{|}') or _is_odd_number(parts.hostname or ""):
        raise InvalidInput(field, expected, url)


def is_numeric(host: str) -> bool:
    """Returns True if a host is written as an IP address in any form; these are not resolved."""
    return ":" in host or host.replace(".", "").isdigit()


def _is_odd_number(host: str) -> bool:
    """Returns True for numbers that only some programs read as an address: 2130706433."""
    if not is_numeric(host):
        return False
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return True
    return False


def may_reach(address: str, allowed: Sequence[Network]) -> bool:
    """Returns True if a webhook may be sent to this address: it is public or allowed."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_is_public(one) or is_in(one, allowed) for one in _meant(found))


def _is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast


def _meant(address: Address) -> list[Address]:
    """Returns the address, or the IPv4 addresses that a gateway would turn it into."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _TRANSLATED or address in _LOCALLY_TRANSLATED:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    if address in _COMPATIBLE and int(address) > 1:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    if address.sixtofour is not None:
        return [address, address.sixtofour]
    return [address]


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Returns the HMAC-SHA256 of the time in seconds, a dot and the body."""
    text = b"%d." % timestamp + body
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


def pause_ms(tries: int) -> int | None:
    """Returns how long to wait after this many failed tries; None to give up."""
    if tries >= TRIES:
        return None
    longest: int = min(FIRST_PAUSE_MS * 2 ** (tries - 1), MAX_PAUSE_MS)
    return longest

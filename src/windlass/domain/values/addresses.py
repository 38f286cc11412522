"""Addresses: whether only this machine can reach one, and how messages show that of a store."""

import ipaddress
from urllib.parse import parse_qsl, urlencode, urlsplit


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can reach the address."""
    if host == "localhost":
        return True
    return is_address(host) and ipaddress.ip_address(host).is_loopback


def is_address(host: str) -> bool:
    """Returns whether a host is an IP address rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def without_password(address: str) -> str:
    """Returns an address that may be shown, and that works where the password is known."""
    parts = urlsplit(address)
    user, at, place = parts.netloc.rpartition("@")
    kept = [pair for pair in parse_qsl(parts.query) if pair[0] != "password"]
    query = f"?{urlencode(kept, safe='/')}" if kept else ""
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{place}{parts.path}{query}"

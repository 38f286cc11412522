"""Addresses and networks as options name them, and store addresses as messages show them."""

import ipaddress
from collections.abc import Sequence
from urllib.parse import parse_qsl, urlencode, urlsplit

from windlass.domain.values.errors import InvalidInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


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


def parse_networks(texts: Sequence[str], field: str) -> tuple[Network, ...]:
    """Parses the networks of an option."""
    networks: list[Network] = []
    for text in (texts,) if isinstance(texts, str) else texts:
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError:
            raise InvalidInput(field, "a list of networks such as 10.1.0.0/16", text) from None
    return tuple(networks)


def is_in(address: Address, networks: Sequence[Network]) -> bool:
    """Returns True if one of the networks contains the address."""
    return any(address.version == net.version and address in net for net in networks)


def without_password(address: str) -> str:
    """Returns an address that is safe to show, and still works where the password is known."""
    parts = urlsplit(address)
    user, at, place = parts.netloc.rpartition("@")
    kept = [pair for pair in parse_qsl(parts.query) if pair[0] != "password"]
    query = f"?{urlencode(kept, safe='/')}" if kept else ""
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{place}{parts.path}{query}"

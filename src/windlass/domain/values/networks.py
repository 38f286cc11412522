"""Networks as options name them, such as 10.1.0.0/16."""

import ipaddress
from collections.abc import Sequence

from windlass.domain.values.errors import InvalidInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


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

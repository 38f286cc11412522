"""Orders for machines, as the pools loop gives them."""

from typing import Any

from windlass.ports.provider import Order, Owner

OWNER = Owner("0123456789ab", "build")


def order(token: str = "build-1", owner: Owner = OWNER, **changes: Any) -> Order:
    """A machine whose worker finds nobody."""
    made = Order(owner, token, "http://127.0.0.1:9", "enrol_secret", 2, {"cpus": 4})
    return made._replace(**changes)

"""Defines roles and which namespaces a token may see."""

from enum import StrEnum
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput


class Role(StrEnum):
    """A role includes the rights of the roles above it; `WORKER` is separate."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"


PERSON: Final = "oidc:"  # begins the names of people that signed in
MACHINE: Final = "jwt:"  # begins the names of machines with a token of their own issuer
SIGNED_IN: Final = (PERSON, MACHINE)

_ORDER: Final = (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR, Role.ADMIN)


class Identity(NamedTuple):
    """The caller that a token identifies."""

    token: int
    name: str
    role: Role
    namespaces: tuple[str, ...] = ()  # empty: all
    worker: int = 0
    shut_out: str = ""  # the worker's status if it makes the token invalid, else empty

    def may(self, needed: Role) -> bool:
        """Returns True if this role includes the needed one."""
        if needed is Role.WORKER or self.role is Role.WORKER:
            return self.role is needed
        return _ORDER.index(self.role) >= _ORDER.index(needed)

    def sees(self, namespace: str) -> bool:
        """Returns True if the token may see objects of this namespace."""
        return not self.namespaces or namespace in self.namespaces

    def may_fleet(self, needed: Role) -> bool:
        """Returns True if the token may change what namespaces share: pools, queues, workers."""
        return self.may(needed) and not self.namespaces

    @property
    def own_namespace(self) -> str:
        """Returns the namespace of jobs that do not name one."""
        if not self.namespaces or "default" in self.namespaces:
            return "default"
        return self.namespaces[0]


def parse_role(text: str) -> Role:
    """Returns the role with this name."""
    try:
        return Role(text)
    except ValueError:
        raise InvalidInput("role", f"one of {', '.join(Role)}", text) from None

"""Who may do what: roles, and the namespaces a token sees."""

from enum import StrEnum
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput


class Role(StrEnum):
    """Each role may do what those before it may; `WORKER` stands apart."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"


_ORDER: Final = (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR, Role.ADMIN)


class Identity(NamedTuple):
    """Whoever presented a token."""

    token: int
    name: str
    role: Role
    namespaces: tuple[str, ...] = ()  # empty: all
    worker: int = 0
    shut_out: str = ""  # why the worker's token is worthless now: its status, or empty

    def may(self, needed: Role) -> bool:
        """Returns whether this role covers the one that is needed."""
        if needed is Role.WORKER or self.role is Role.WORKER:
            return self.role is needed
        return _ORDER.index(self.role) >= _ORDER.index(needed)

    def sees(self, namespace: str) -> bool:
        """Returns whether objects of this namespace exist for the token."""
        return not self.namespaces or namespace in self.namespaces

    def may_fleet(self, needed: Role) -> bool:
        """Whether this token may do what concerns all namespaces: pools, queues, workers."""
        return self.may(needed) and not self.namespaces

    @property
    def own_namespace(self) -> str:
        """Where jobs go that name no namespace."""
        if not self.namespaces or "default" in self.namespaces:
            return "default"
        return self.namespaces[0]


def parse_role(text: str) -> Role:
    """Returns a role by its name."""
    try:
        return Role(text)
    except ValueError:
        raise InvalidInput("role", f"one of {', '.join(Role)}", text) from None

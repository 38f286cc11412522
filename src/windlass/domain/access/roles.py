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

    __hash__ = str.__hash__  # faster than that of an enumeration: every request looks one up


# A role includes those with lower numbers. Workers have rights of their own and no others.
RANKS: Final = {
    Role.WORKER: 0,
    Role.VIEWER: 1,
    Role.SUBMITTER: 2,
    Role.OPERATOR: 3,
    Role.ADMIN: 4,
}


class Identity(NamedTuple):
    """The caller that a token identifies.

    A worker's token is that of one `incarnation`; 0 is the secret with which it enrols.
    """

    token: int
    name: str
    role: Role
    namespaces: tuple[str, ...] = ()  # empty: all
    worker: int = 0
    incarnation: int = 0
    shut_out: str = ""  # the worker's status if it makes the token invalid, else empty

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

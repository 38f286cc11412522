"""What a route demands of its caller; every route names one of these."""

from typing import Final, NamedTuple

from windlass.api.errors import Forbidden, Unauthorized
from windlass.domain.access.roles import Identity, Role

NO_TOKEN: Final = "this needs a valid token: Authorization: Bearer …"
PENDING: Final = "pending_approval"


class Permission(NamedTuple):
    """A token with at least this role; without `role`, any valid token.

    A route of the `fleet` concerns all namespaces: tokens limited to some may not call it. The
    token of a worker that is pending, disabled or removed is refused; where `pending` is set,
    a pending worker may call and ask whether it still is.
    """

    role: Role | None = None
    fleet: bool = False
    pending: bool = False
    token: bool = True  # False: everybody may call it

    def __str__(self) -> str:
        if not self.token:
            return "open"
        role = "any token" if self.role is None else str(self.role)
        return f"{role} of all namespaces" if self.fleet else role

    def check(self, caller: Identity | None) -> None:
        """Raises `Unauthorized` without a token, `Forbidden` if it is not enough."""
        if not self.token:
            return
        if caller is None:
            raise Unauthorized(NO_TOKEN)
        if self.role is not None and not caller.may(self.role):
            raise Forbidden(f"this needs the role {self.role}, the token has {caller.role}")
        if self.fleet and self.role is not None and not caller.may_fleet(self.role):
            raise Forbidden("this concerns all namespaces, and the token is limited to some")
        if caller.shut_out and not (self.pending and caller.shut_out == PENDING):
            raise Forbidden(f"the worker of this token is {caller.shut_out}: it may do nothing")


OPEN: Final = Permission(token=False)
ANY_TOKEN: Final = Permission()
VIEWER: Final = Permission(Role.VIEWER)
SUBMITTER: Final = Permission(Role.SUBMITTER)
OPERATOR: Final = Permission(Role.OPERATOR)
ADMIN: Final = Permission(Role.ADMIN)
FLEET_OPERATOR: Final = Permission(Role.OPERATOR, fleet=True)
FLEET_ADMIN: Final = Permission(Role.ADMIN, fleet=True)
WORKER: Final = Permission(Role.WORKER)
WORKER_OR_PENDING: Final = Permission(Role.WORKER, pending=True)

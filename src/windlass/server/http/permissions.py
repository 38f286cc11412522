"""What a route demands of its caller; every route names one of these."""

from typing import Final, NamedTuple

from windlass.api.errors import Forbidden, Unauthorized
from windlass.domain.access.roles import Identity, Role

NO_TOKEN: Final = "this needs a valid token: Authorization: Bearer …"


class Permission(NamedTuple):
    """A token with at least this role; without `role`, any valid token."""

    role: Role | None = None
    token: bool = True  # False: everybody may call it

    def __str__(self) -> str:
        if not self.token:
            return "open"
        return "any token" if self.role is None else str(self.role)

    def check(self, caller: Identity | None) -> None:
        """Raises `Unauthorized` without a token, `Forbidden` if its role is not enough."""
        if not self.token:
            return
        if caller is None:
            raise Unauthorized(NO_TOKEN)
        if self.role is not None and not caller.may(self.role):
            raise Forbidden(f"this needs the role {self.role}, the token has {caller.role}")


OPEN: Final = Permission(token=False)
ANY_TOKEN: Final = Permission()
VIEWER: Final = Permission(Role.VIEWER)
SUBMITTER: Final = Permission(Role.SUBMITTER)
OPERATOR: Final = Permission(Role.OPERATOR)
ADMIN: Final = Permission(Role.ADMIN)
WORKER: Final = Permission(Role.WORKER)

"""What the roles may do with jobs, as the operator of an installation sets it."""

from typing import Annotated, Final

from msgspec import Struct

from windlass.domain.access.roles import Identity, Role
from windlass.domain.lifecycle.rank import LEVEL_LIMIT, parse_priority
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.options import doc

UNBOUNDED: Final = (-LEVEL_LIMIT, LEVEL_LIMIT)


class AccessPolicy(Struct, frozen=True):
    """The priorities that submitters and operators may give, and whose jobs submitters change."""

    submitter_priority_min: Annotated[
        int, doc("levels", "The lowest priority that a submitter may give.", least=-LEVEL_LIMIT)
    ] = -LEVEL_LIMIT
    submitter_priority_max: Annotated[
        int, doc("levels", "The highest priority that a submitter may give.", least=-LEVEL_LIMIT)
    ] = 100
    operator_priority_min: Annotated[
        int, doc("levels", "The lowest priority that an operator may give.", least=-LEVEL_LIMIT)
    ] = -LEVEL_LIMIT
    operator_priority_max: Annotated[
        int, doc("levels", "The highest priority that an operator may give.", least=-LEVEL_LIMIT)
    ] = LEVEL_LIMIT
    submitter_changes_all: Annotated[
        int,
        doc(
            "switch",
            "1: a submitter may cancel, retry and lower all jobs that it sees. 0: only its own.",
        ),
    ] = 0

    def bounds(self, role: Role) -> tuple[int, int]:
        """Returns the lowest and the highest priority that a role may give."""
        if role is Role.SUBMITTER:
            return self.submitter_priority_min, self.submitter_priority_max
        if role is Role.OPERATOR:
            return self.operator_priority_min, self.operator_priority_max
        return UNBOUNDED


def check_policy(policy: AccessPolicy) -> None:
    """Raises `InvalidInput` for bounds that nothing lies between."""
    for role in (Role.SUBMITTER, Role.OPERATOR):
        least, most = policy.bounds(role)
        if most < least:
            expected = f"at least access.{role}_priority_min ({least})"
            raise InvalidInput(f"access.{role}_priority_max", expected, most)


def check_priority(value: int | str, who: Identity, policy: AccessPolicy, field: str) -> None:
    """Raises `InvalidInput` for a priority that the caller may not give."""
    least, most = policy.bounds(who.role)
    if not least <= parse_priority(value, field) <= most:
        raise InvalidInput(field, f"from {least} to {most}, for the role {who.role}", value)

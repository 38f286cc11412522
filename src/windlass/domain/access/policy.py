"""What the roles may do with jobs and how long tokens live, as configured by the operator."""

from typing import Annotated, Final

from msgspec import Struct

from windlass.domain.access.rights import Identity, Role
from windlass.domain.lifecycle.rank import LEVEL_LIMIT, parse_priority
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.options import doc
from windlass.domain.values.quantities import format_duration

UNBOUNDED: Final = (-LEVEL_LIMIT, LEVEL_LIMIT)


class AccessPolicy(Struct, frozen=True):
    """The priorities each role may set, whose jobs submitters may change, token lifetimes."""

    submitter_priority_min: Annotated[
        int, doc("The lowest priority that a submitter may set.", "levels", least=-LEVEL_LIMIT)
    ] = -LEVEL_LIMIT
    submitter_priority_max: Annotated[
        int, doc("The highest priority that a submitter may set.", "levels", least=-LEVEL_LIMIT)
    ] = 100
    operator_priority_min: Annotated[
        int, doc("The lowest priority that an operator may set.", "levels", least=-LEVEL_LIMIT)
    ] = -LEVEL_LIMIT
    operator_priority_max: Annotated[
        int, doc("The highest priority that an operator may set.", "levels", least=-LEVEL_LIMIT)
    ] = LEVEL_LIMIT
    submitter_changes_all: Annotated[
        int,
        doc(
            "1: a submitter may cancel, retry and lower every job it can see. 0: only its own.",
            "switch",
        ),
    ] = 0

    token_lifetime_ms: Annotated[
        int,
        doc(
            "Lifetime of a new token that asks for none. 0: as long as access.token_lifetime_max "
            "allows.",
        ),
    ] = 0
    token_lifetime_max_ms: Annotated[
        int, doc("Maximum lifetime of a new token. 0: until it is revoked.")
    ] = 0
    session_lifetime_ms: Annotated[
        int,
        doc("How long a browser session lasts before the user must sign in again.", least=60_000),
    ] = 3_600_000

    def token_ttl_ms(self, asked_ms: int | None) -> int:
        """Returns how long a new token is valid, 0: until it is revoked."""
        limit_ms = self.token_lifetime_max_ms
        if asked_ms is None:
            return self.token_lifetime_ms or limit_ms
        if limit_ms and asked_ms > limit_ms:
            expected = f"at most {format_duration(limit_ms)} (access.token_lifetime_max)"
            raise InvalidInput("expires", expected, format_duration(asked_ms))
        return asked_ms

    def bounds(self, role: Role) -> tuple[int, int]:
        """Returns the lowest and highest priority that a role may set."""
        if role is Role.SUBMITTER:
            return self.submitter_priority_min, self.submitter_priority_max
        if role is Role.OPERATOR:
            return self.operator_priority_min, self.operator_priority_max
        return UNBOUNDED


def check_policy(policy: AccessPolicy) -> None:
    """Raises `InvalidInput` if a lower bound is above its upper bound."""
    for role in (Role.SUBMITTER, Role.OPERATOR):
        lowest, highest = policy.bounds(role)
        if highest < lowest:
            expected = f"at least access.{role}_priority_min ({lowest})"
            raise InvalidInput(f"access.{role}_priority_max", expected, highest)
    longest = policy.token_lifetime_max_ms
    if longest and policy.token_lifetime_ms > longest:
        expected = f"at most access.token_lifetime_max ({format_duration(longest)})"
        got = format_duration(policy.token_lifetime_ms)
        raise InvalidInput("access.token_lifetime", expected, got)


def check_priority(value: int | str, who: Identity, policy: AccessPolicy, field: str) -> None:
    """Raises `InvalidInput` for a priority that the caller may not set."""
    lowest, highest = policy.bounds(who.role)
    if not lowest <= parse_priority(value, field) <= highest:
        raise InvalidInput(field, f"from {lowest} to {highest}, for the role {who.role}", value)

"""What the roles may do with jobs and how long tokens live, as the operator sets it."""

from typing import Annotated, Final

from msgspec import Struct

from windlass.domain.access.rights import Identity, Role
from windlass.domain.lifecycle.rank import LEVEL_LIMIT, parse_priority
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.options import doc
from windlass.domain.values.quantities import format_duration

UNBOUNDED: Final = (-LEVEL_LIMIT, LEVEL_LIMIT)


class AccessPolicy(Struct, frozen=True):
    """The priorities that roles may give, whose jobs submitters change, how long tokens live."""

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

    token_lifetime_ms: Annotated[
        int,
        doc(
            "ms",
            "How long a new token is valid if nothing else is asked for. "
            "0: as long as access.token_lifetime_max allows.",
        ),
    ] = 0
    token_lifetime_max_ms: Annotated[
        int, doc("ms", "The longest that a new token may be valid. 0: until it is revoked.")
    ] = 0
    session_lifetime_ms: Annotated[
        int,
        doc("ms", "How long a browser stays signed in before it signs in again.", least=60_000),
    ] = 3_600_000

    def token_ttl_ms(self, asked_ms: int | None) -> int:
        """Returns how long a new token is valid, 0: until it is revoked."""
        most = self.token_lifetime_max_ms
        if asked_ms is None:
            return self.token_lifetime_ms or most
        if most and asked_ms > most:
            expected = f"at most {format_duration(most)} (access.token_lifetime_max)"
            raise InvalidInput("expires", expected, format_duration(asked_ms))
        return asked_ms

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
    longest = policy.token_lifetime_max_ms
    if longest and policy.token_lifetime_ms > longest:
        expected = f"at most access.token_lifetime_max ({format_duration(longest)})"
        got = format_duration(policy.token_lifetime_ms)
        raise InvalidInput("access.token_lifetime", expected, got)


def check_priority(value: int | str, who: Identity, policy: AccessPolicy, field: str) -> None:
    """Raises `InvalidInput` for a priority that the caller may not give."""
    least, most = policy.bounds(who.role)
    if not least <= parse_priority(value, field) <= most:
        raise InvalidInput(field, f"from {least} to {most}, for the role {who.role}", value)

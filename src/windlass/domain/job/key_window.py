"""How long a key stays with the job or workflow that took it: `key_for`."""

from typing import Final

from windlass.domain.job.forms import FOREVER, Duration, milliseconds, window
from windlass.domain.values.errors import InvalidInput

_NEVER_ENDS: Final = 2**62


def canonical_window(value: Duration | None, key: str | None, field: str) -> Duration | None:
    """Returns `key_for` in its canonical form; raises `InvalidInput` without a key."""
    if value is None:
        return None
    if key is None:
        raise InvalidInput(field, "given with a key", value)
    return window(value, field)


def bound_until(key_for: Duration | None, created_at: int) -> int:
    """Returns when a key is free, if the one who has it has ended by then."""
    if key_for == FOREVER:
        return _NEVER_ENDS
    return created_at + (milliseconds(key_for) or 0)

"""What a worker with resources instead of slots has left for more jobs.

The server matches a job against all that a worker has; what is in use, only the worker
knows. So it takes jobs one ahead, before they start, and starts each when it fits.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from windlass.domain.resources import canonical_resources

CPUS: Final = "cpus"

Amounts = Mapping[str, int]


class Budget:
    """Amounts by name. Without any, everything fits: then slots alone count."""

    def __init__(self, amounts: Amounts) -> None:
        self._amounts = dict(amounts)

    def __bool__(self) -> bool:
        return bool(self._amounts)

    def needs(self, resources: Mapping[str, Any] | None) -> dict[str, int]:
        """What a job takes of this; a job that says nothing of processors takes one."""
        asked = dict(canonical_resources(resources or {}))
        if CPUS in self._amounts:
            asked.setdefault(CPUS, 1)
        return {name: amount for name, amount in asked.items() if name in self._amounts}

    def fits(self, wanted: Amounts, taken: Iterable[Amounts]) -> bool:
        """Whether there is room for `wanted` beside what is taken."""
        left = dict(self._amounts)
        for amounts in taken:
            for name, amount in amounts.items():
                left[name] -= amount
        return all(amount <= left[name] for name, amount in wanted.items())

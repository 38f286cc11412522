"""The resources a job takes on a worker while it runs: cpus, memory, gpus and custom ones."""

import re
from collections.abc import Mapping
from typing import Final

from windlass.domain.matching.clauses import SHORT_NAMES, is_size
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import SIZE_LIMIT, parse_size

CPUS: Final = "cpus"
NO_CPUS: Final = (CPUS, 0)  # a job that says so uses none where jobs share processors
_BUILT_IN: Final = frozenset({"cpus", "memory", "gpus", "disk"})
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def canonical_resources(resources: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """Returns amounts as integers (memory and disk in bytes), sorted, without zeros."""
    amounts = {name: _amount(name, value) for name, value in resources.items()}
    return tuple((name, amounts[name]) for name in sorted(amounts) if amounts[name])


def canonical_needs(resources: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """Returns a job's needs in the same form, but keeps an explicit 0 of cpus."""
    found = canonical_resources(resources)
    none = CPUS in resources and all(name != CPUS for name, _ in found)
    return tuple(sorted((*found, NO_CPUS))) if none else found


def resource_key(name: str) -> str:
    """Returns the metadata key under which a worker reports how much it has."""
    return SHORT_NAMES[name] if name in _BUILT_IN else f"resource:{name}"


def _amount(name: str, value: object) -> int:
    if not _NAME.fullmatch(name):
        expected = "named with letters, digits, _, . and -, at most 100"
        raise InvalidInput("resources", expected, name)
    where = f"resources.{name}"
    if is_size(name):
        return parse_size(value, where)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= SIZE_LIMIT:
        return value
    raise InvalidInput(where, "a whole number of 0 or more", value)

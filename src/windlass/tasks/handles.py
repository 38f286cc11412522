"""Handles of jobs among arguments: they stand for the results of those jobs."""

from typing import Any

from windlass.domain.tasks.references import RESULT


def reference_of(value: Any) -> int | str | None:
    """Returns the job that a handle stands for, by id or name; None for other values."""
    refer = getattr(type(value), "__windlass_reference__", None)
    found: int | str | None = None if refer is None else refer(value)
    return found


def with_references(value: Any) -> Any:
    """Returns JSON with handles replaced by references; everything else stays as it is."""
    if isinstance(value, dict):
        return {key: with_references(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_references(item) for item in value]
    reference = reference_of(value)
    return value if reference is None else {RESULT: reference}

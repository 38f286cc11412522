"""Handles of jobs among arguments: they stand for the results of those jobs."""

from typing import Any


def reference_of(value: Any) -> int | str | None:
    """Returns the job that a handle stands for, by id or name; None for other values."""
    refer = getattr(type(value), "__windlass_reference__", None)
    found: int | str | None = None if refer is None else refer(value)
    return found

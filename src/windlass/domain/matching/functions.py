"""Which Python functions a worker can run: it finds out by importing them, and reports versions.

A job with a function asks its worker for that function by a clause. A worker that has not tried to
import it counts as a match: it tries, and if that fails it says so in its metadata and hands the
job back. So no worker has to list what it could import.
"""

from collections.abc import Mapping
from typing import Any, Final

START: Final = "functions:"
# Part of the reason why a worker lacks a function, if its code is where no job can read it.
UNSEEN: Final = "which jobs cannot see"
MISSING: Final = "functions:missing"  # metadata: why it cannot run certain functions, by function
VERSIONS: Final = "functions:versions"  # metadata: versions that functions declare, by function
KNOWN: Final = "functions:known"  # metadata: functions it has imported, for people
# metadata: the parameters of functions, for people who call them
SCHEMAS: Final = "functions:schemas"
VERSION_LIMIT: Final = 100
VERSION_SIGN: Final = "=="


def function_key(name: str, version: str | None = None) -> str:
    """Returns the clause key for a function or task, of any version or of this one."""
    return name if version is None else f"{name}{VERSION_SIGN}{version}"


def function_needs(key: str) -> str:
    """Returns what a job needs, for people."""
    name, _, version = key.partition(VERSION_SIGN)
    return f"version {version} of {name}" if version else f"the function {name}"


def why_not(key: str, metadata: Mapping[str, object]) -> str | None:
    """Returns why a worker cannot run this function; None if no reason is known."""
    name, _, version = key.partition(VERSION_SIGN)
    missing = _mapping(metadata.get(MISSING))
    found = missing.get(name) or missing.get(key)
    if found is not None:
        return str(found)
    declared = _mapping(metadata.get(VERSIONS)).get(name) if version else None
    return None if declared in (None, version) else f"version {declared}"


def without_functions(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata without its entries about functions."""
    return {key: value for key, value in metadata.items() if not key.startswith(START)}


def without_schemas(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata without function parameters: they are long, and shown as tasks."""
    return {key: value for key, value in metadata.items() if key != SCHEMAS}


def with_functions_of(metadata: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata with the function entries of another one."""
    reported = {key: value for key, value in other.items() if key.startswith(START)}
    return {**without_functions(metadata), **reported}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}

"""Which Python functions a worker can run: what it found out by trying, and their versions.

A job of a function asks its worker for that function by a clause like all others. A worker that
has not tried to import it is a match: it tries, and if it fails it says so in its metadata and
hands the job back. So no worker has to list what it could import.
"""

from collections.abc import Mapping
from typing import Any, Final

START: Final = "functions:"
# In the reason why a worker lacks a function, if its code is where no job can read it.
UNSEEN: Final = "which jobs cannot see"
MISSING: Final = "functions:missing"  # metadata: why it cannot run functions, by function
VERSIONS: Final = "functions:versions"  # metadata: versions that functions declare, by function
KNOWN: Final = "functions:known"  # metadata: functions it has imported, for people
SCHEMAS: Final = "functions:schemas"  # metadata: what functions take, for people who call them
VERSION_LIMIT: Final = 100
VERSION_SIGN: Final = "=="


def function_key(name: str, version: str | None = None) -> str:
    """Returns how a clause names a function, or a task, of any version or of this one."""
    return name if version is None else f"{name}{VERSION_SIGN}{version}"


def function_needs(key: str) -> str:
    """Returns what a job asks for, for people."""
    name, _, version = key.partition(VERSION_SIGN)
    return f"version {version} of {name}" if version else f"the function {name}"


def why_not(key: str, metadata: Mapping[str, object]) -> str | None:
    """Returns what keeps a worker from running this function; None if nothing is known to."""
    name, _, version = key.partition(VERSION_SIGN)
    missing = _mapping(metadata.get(MISSING))
    found = missing.get(name) or missing.get(key)
    if found is not None:
        return str(found)
    declared = _mapping(metadata.get(VERSIONS)).get(name) if version else None
    return None if declared in (None, version) else f"version {declared}"


def without_functions(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata without what it says about functions."""
    return {key: value for key, value in metadata.items() if not key.startswith(START)}


def without_schemas(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata without what functions take: long, and shown as tasks."""
    return {key: value for key, value in metadata.items() if key != SCHEMAS}


def with_functions_of(metadata: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata with what another says about functions."""
    told = {key: value for key, value in other.items() if key.startswith(START)}
    return {**without_functions(metadata), **told}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}

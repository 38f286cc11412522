"""Decides which jobs may use which secrets. The values never leave the workers.

A worker reports which secrets it has and for which namespaces. A job that names secrets only
matches workers that have them for the job's namespace.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from windlass.domain.values.errors import InvalidInput

KEY_START: Final = "secret:"
EVERYONE: Final = "*"  # stands for all namespaces
MAX_SECRETS: Final = 100
OWN_START: Final = "WINDLASS_"  # prefix of variables that only the worker sets

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_DIVIDERS: Final = re.compile(r"[\[\],*]")
_EXPECTED: Final = (
    f"a name of letters, digits and _, at most 100, that does not start with {OWN_START}"
)


def check_secret_name(name: object, field: str) -> None:
    """Raises `InvalidInput` unless the name can be a secret's and an environment variable's."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith(OWN_START):
        raise InvalidInput(field, _EXPECTED, name)


def check_secret_namespace(namespace: str, field: str) -> None:
    """Raises `InvalidInput` for a namespace that a clause would take for several or all."""
    if not namespace or namespace != namespace.strip() or _DIVIDERS.search(namespace):
        raise InvalidInput(
            field, "a namespace without [ ] , and * if the job uses secrets", namespace
        )


def metadata_key(name: str) -> str:
    """Returns the metadata key that lists the namespaces which may use a worker's secret."""
    return f"{KEY_START}{name}"


def secret_clauses(names: Sequence[str], namespace: str, field: str) -> list[str]:
    """Returns the clauses a worker must meet to run a job with these secrets."""
    if not names:
        return []
    if len(names) > MAX_SECRETS:
        raise InvalidInput(f"{field}.secrets", f"at most {MAX_SECRETS}", len(names))
    for number, name in enumerate(names):
        check_secret_name(name, f"{field}.secrets[{number}]")
    check_secret_namespace(namespace, f"{field}.namespace")
    return [f"{metadata_key(name)} in {EVERYONE},{namespace}" for name in names]


def advertise(held: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Returns the metadata of a worker that holds secrets, given as (namespace, name)."""
    metadata: dict[str, list[str]] = {}
    for namespace, name in sorted(held):
        metadata.setdefault(metadata_key(name), []).append(namespace)
    return metadata

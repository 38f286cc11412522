"""Where things of a solver stand in the bucket."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from windlass.domain.values.errors import InvalidInput

Kind = Literal["production", "coverage"]

KINDS: Final[Sequence[Kind]] = ("production", "coverage")
BUILDS_KEPT_MS: Final = 7 * 86_400_000

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
_COMMIT: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}\Z")


def check_name(name: str, field: str = "name") -> str:
    """The name of a solver, which becomes a part of keys."""
    if not _NAME.match(name):
        raise InvalidInput(field, "letters, digits, - _ and ., at most 64 of them", name)
    return name


def is_commit(text: object) -> bool:
    """Whether this may stand in a state file as a commit."""
    return isinstance(text, str) and bool(_COMMIT.match(text))


def check_commit(commit: str) -> str:
    """The hash of a commit as it was given by a person."""
    if not is_commit(commit):
        raise InvalidInput("commit", "the hash of a commit", commit)
    return commit


def solver_prefix(solver: str) -> str:
    return f"solvers/{check_name(solver, 'solver')}"


def state_key(solver: str, name: str) -> str:
    """One of state.json, build-queue.json, fuzzing-schedule.json, leases.json."""
    return f"{solver_prefix(solver)}/fuzzing-state/{name}"


def builds_prefix(solver: str) -> str:
    return f"{solver_prefix(solver)}/builds"


def build_key(solver: str, kind: Kind, commit: str) -> str:
    """The binaries of a commit, as one archive."""
    return f"{builds_prefix(solver)}/{kind}/{check_commit(commit)}.tar.gz"


def build_log_key(solver: str, commit: str) -> str:
    """What the build of a commit said; not below `builds`, so that it outlives them."""
    return f"{solver_prefix(solver)}/build-logs/{check_commit(commit)}.log"


def coverage_key(solver: str) -> str:
    """The newest coverage map."""
    return f"{solver_prefix(solver)}/coverage/map.json.gz"


def findings_prefix(solver: str) -> str:
    return f"{solver_prefix(solver)}/findings"


def corpus_prefix(solver: str) -> str:
    return f"{solver_prefix(solver)}/corpus"


def statistics_prefix(solver: str) -> str:
    return f"{solver_prefix(solver)}/statistics"

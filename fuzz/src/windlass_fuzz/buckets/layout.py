"""The keys of a solver's objects in the bucket."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

from windlass.domain.values.errors import InvalidInput

Kind = Literal["production", "coverage"]

KINDS: Final[Sequence[Kind]] = ("production", "coverage")
BUILDS_KEPT_MS: Final = 7 * 86_400_000

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
_ENDING: Final = re.compile(r"\.[A-Za-z0-9_+-]{1,16}\Z")
_COMMIT: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}\Z")


def check_name(name: str, field: str = "name") -> str:
    """Checks the name of a solver, which becomes part of keys."""
    if not _NAME.match(name):
        raise InvalidInput(field, "at most 64 letters, digits, '-', '_' and '.'", name)
    return name


def plain_ending(name: str) -> str:
    """Returns the extension of a file name, "" if it has unusual characters.

    Tests come from repositories that we do not trust, and their names are used in keys, reports and
    scripts.
    """
    ending = PurePosixPath(name).suffix
    return ending if _ENDING.match(ending) else ""


def is_commit(text: object) -> bool:
    """Returns whether a value is acceptable as a commit in a state file."""
    return isinstance(text, str) and bool(_COMMIT.match(text))


def check_commit(commit: str) -> str:
    """Checks a commit hash that a person entered."""
    if not is_commit(commit):
        raise InvalidInput("commit", "a commit hash", commit)
    return commit


def solver_prefix(solver: str) -> str:
    return f"solvers/{check_name(solver, 'solver')}"


def state_key(solver: str, name: str) -> str:
    """Returns the key of state.json, build-queue.json, fuzzing-schedule.json or leases.json."""
    return f"{solver_prefix(solver)}/fuzzing-state/{name}"


def builds_prefix(solver: str) -> str:
    return f"{solver_prefix(solver)}/builds"


def kind_prefix(solver: str, kind: Kind, combination: str = "") -> str:
    """Returns the folder of the builds of a kind; each combination of a matrix has its own."""
    if kind == "production" and combination:
        return f"{builds_prefix(solver)}/matrix/{check_name(combination, 'combination')}"
    return f"{builds_prefix(solver)}/{kind}"


def build_key(solver: str, kind: Kind, commit: str, combination: str = "") -> str:
    """Returns the key of the archive with a commit's binaries."""
    return f"{kind_prefix(solver, kind, combination)}/{check_commit(commit)}.tar.gz"


def combinations_key(solver: str, commit: str) -> str:
    """Returns the key of the list of combinations that were built of a commit."""
    return f"{builds_prefix(solver)}/combinations/{check_commit(commit)}.json"


def build_log_key(solver: str, commit: str) -> str:
    """Returns the key of a commit's build log. It is not below `builds`, so it outlives them."""
    return f"{solver_prefix(solver)}/build-logs/{check_commit(commit)}.log"


def coverage_key(solver: str) -> str:
    """Returns the key of the newest coverage map."""
    return f"{solver_prefix(solver)}/coverage/map.json.gz"


def report_prefix(solver: str) -> str:
    """Returns the folder of the newest HTML coverage report."""
    return f"{solver_prefix(solver)}/coverage-report"


def reached_prefix(solver: str) -> str:
    """Returns the folder of what each commit's fuzzing was the first to reach."""
    return f"{solver_prefix(solver)}/reached"


def findings_prefix(solver: str) -> str:
    return f"{solver_prefix(solver)}/findings"


def untriaged_prefix(solver: str, combination: str = "") -> str:
    """Returns the folder of inputs that broke a build and were not triaged yet."""
    return _below(f"{solver_prefix(solver)}/untriaged", combination)


def corpus_prefix(solver: str, shared: str = "") -> str:
    """Returns the folder of inputs; `shared` names the target and format that share them."""
    return _below(f"{solver_prefix(solver)}/corpus", shared)


def _below(folder: str, name: str) -> str:
    return f"{folder}/{check_name(name, 'combination')}" if name else folder


def statistics_prefix(solver: str) -> str:
    return f"{solver_prefix(solver)}/statistics"

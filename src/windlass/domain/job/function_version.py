"""The function that a job asks its worker for, and its version."""

from typing import Final

from windlass.domain.matching.clauses import Clause, function_clause
from windlass.domain.matching.functions import VERSION_LIMIT, function_key
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import check_name

# Tasks that run no function of the user's, and so have no versions.
NO_FUNCTIONS: Final = frozenset({"ffmpeg", "gstreamer", "media", "shell"})


def asked_function(
    task: str, function: str | None, version: str | None, field: str
) -> tuple[Clause, ...]:
    """Returns the clause for a job's function, if it has one; raises `InvalidInput`.

    A job of a named task asks only for a version: workers list the named tasks they run.
    """
    if version is None:
        return () if function is None else (function_clause(function),)
    where = f"{field}.version"
    check_name(where, version)
    if task in NO_FUNCTIONS:
        raise InvalidInput(where, f"only for Python functions, not for {task} jobs", version)
    if len(version) > VERSION_LIMIT:
        raise InvalidInput(where, f"at most {VERSION_LIMIT} characters", version)
    return (function_clause(function_key(function or task, version)),)

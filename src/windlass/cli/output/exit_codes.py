"""The exit codes of the commands; `windlass run` exits with its job's own code."""

from typing import Final

from windlass.domain.values.errors import InvalidInput, NotFound, Unreachable, WindlassError

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
NOT_FOUND: Final = 4
REFUSED: Final = 5
INTERRUPTED: Final = 130

# The reference page prints these.
EXIT_CODES: Final = {
    OK: "success",
    FAILED: "`verify` found violations, `doctor` found problems; `run`: the job failed",
    USAGE: "an argument, option or setting is invalid; nothing was done",
    UNREACHABLE: "no server is known, none answers there, or its certificate is not trusted",
    NOT_FOUND: "the job, worker, … does not exist; no job to prioritize matches the filter",
    REFUSED: "the server or the store refused all or part: not allowed, conflict, unavailable",
    INTERRUPTED: "interrupted from the keyboard",
}


def exit_code(error: WindlassError) -> int:
    """Returns the exit code for an error."""
    if isinstance(error, InvalidInput):
        return USAGE
    if isinstance(error, Unreachable):
        return UNREACHABLE
    if isinstance(error, NotFound):
        return NOT_FOUND
    return REFUSED

"""What the end of an executor means for its attempt, and what the server is told."""

import errno

import msgspec

from windlass.domain.values.errors import InvalidInput, NotFound, WindlassError
from windlass.messages.sync import Finished
from windlass.ports.executor import Result
from windlass.worker.attempt.masking import Mask
from windlass.worker.core.ports import Key
from windlass.worker.isolation.confinement import ConfinementFailed
from windlass.worker.keeper.kept_process import SpawnFailed

MESSAGE_LIMIT = 4_000
UNSTOPPED = Result(outcome="failed", message="did not stop in time")
STARVED = frozenset({errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE, errno.ENOSPC})


def result_of(error: Exception, ran: bool) -> Result:
    """Returns the result of an executor that raised; `ran`: a process was started before."""
    if isinstance(error, SpawnFailed):
        failure = "resource" if error.number in STARVED else "configuration"
        return Result(outcome="failed", failure=failure, message=error.message)
    if isinstance(error, ConfinementFailed):
        return Result(outcome="failed", failure=error.failure, message=error.message)
    if isinstance(error, InvalidInput):
        return Result(
            outcome="failed", failure="configuration", message=error.message, misfit=not ran
        )
    if isinstance(error, NotFound):  # not this worker's fault, and it would fail here again
        return Result(outcome="failed", failure="configuration", message=error.message)
    if isinstance(error, OSError):
        failure = "resource" if error.errno in STARVED else "execution"
        return Result(outcome="failed", failure=failure, message=str(error))
    if isinstance(error, WindlassError):
        return Result(outcome="failed", failure="network", message=error.message)
    name = type(error).__name__
    return Result(outcome="failed", failure="execution", message=f"{name}: {error}")


def finished(key: Key, result: Result, mask: Mask | None) -> Finished:
    """Returns the report of a result: without secrets, bounded, and valid JSON."""
    message, value, outcome, failure = result.message, result.result, result.outcome, result.failure
    if mask is not None:
        message, value = mask.value(message), mask.value(value)
    if message is not None:
        message = message[:MESSAGE_LIMIT]
    if value is not None:
        try:
            msgspec.json.encode(value)
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            value, outcome, failure = None, "failed", "configuration"
            message = f"the result is not a JSON value: {error}"
    raised = result.raised
    if mask is not None and raised is not None:
        raised = raised.changed(mask.text)
    return Finished(
        *key, outcome, result.exit_code, failure, message, value, result.misfit, raised,
        result.own_limit,
    )  # fmt: skip

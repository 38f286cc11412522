"""Makes the trace of a call current in the process of functions."""

import os

from windlass.tracing.current import VARIABLE, enter_trace, leave_trace
from windlass.tracing.exporting import trace_program


class _Process:
    """Whether this process has looked for an exporter."""

    looked = False


def enter_call_trace(trace: str, *, alone: bool) -> None:
    """Lets spans of the function belong to its attempt; if it is `alone`, of programs as well.

    They are exported if the process sees OpenTelemetry's variables (`windlass worker --env`), or
    if the function's own code configures an exporter.
    """
    if not _Process.looked:
        _Process.looked = True
        trace_program("windlass-function")
    if alone:
        os.environ[VARIABLE] = trace
    enter_trace(trace)


def leave_call_trace() -> None:
    """Leaves the trace of a call that was alone."""
    os.environ.pop(VARIABLE, None)
    leave_trace()

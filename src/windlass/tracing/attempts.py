"""The span of an attempt: made by its worker, or by a server if the worker died with it."""

from typing import Final, NamedTuple

from windlass.domain.lifecycle.traces import Trace, attempt_trace
from windlass.domain.values.ids import shown_attempt
from windlass.tracing.attributes import of_job, of_processing
from windlass.tracing.exporting import Made

LOST: Final = "lost"
_ERRORS: Final = ("failed", "timed_out", LOST)


class Ended(NamedTuple):
    """An attempt that is over, with the data for its span; times are in ms."""

    job: int
    attempt: int
    queue: str
    task: str
    workflow: int | None
    began: int
    ended: int
    outcome: str
    failure: str | None = None


def attempt_span(parent: Trace, of: Ended) -> Made:
    """Returns the span of an attempt of a job with this trace; a retry links to the previous
    one.
    """
    about = of_job(of.job, shown_attempt(of.attempt), of.queue, of.task, of.workflow)
    is_retry = shown_attempt(of.attempt) > 1
    return Made(
        f"process {of.queue}",
        "CONSUMER",
        parent,
        of.began,
        of.ended,
        {**about, **of_processing(of.outcome)},
        own=attempt_trace(parent, of.job, of.attempt),
        link=attempt_trace(parent, of.job, of.attempt - 1) if is_retry else None,
        error=(of.failure or of.outcome) if of.outcome in _ERRORS else None,
    )

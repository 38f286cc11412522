"""What a task raises to say how it goes on: `windlass.Retry` and `windlass.Abort`."""

from datetime import timedelta

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms


class Retry(Exception):
    """Raised inside a task: this try failed, and the job is to be tried again.

    `after` is how long it waits, such as "1m"; without it, as long as before any retry. It counts
    as one of the job's `retries`. `raise windlass.Retry(...) from error` keeps the cause.
    """

    def __init__(self, message: str = "", *, after: float | str | timedelta | None = None) -> None:
        if not isinstance(message, str):
            expected = f"text; `after={message!r}` says how long to wait"
            raise InvalidInput("message", expected, message)
        super().__init__(*([message] if message else []))
        if isinstance(after, timedelta):
            after = after.total_seconds()
        self.after_ms = None if after is None else parse_duration_ms(after, "after")


class Abort(Exception):
    """Raised inside a task: the job fails, and is not retried whatever its options say."""

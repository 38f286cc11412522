"""Trace contexts of jobs, in the W3C form of `traceparent`.

The context of an attempt follows from its job's, so anyone who knows a job's context can compute
the span of each attempt, for example to link a retry to the attempt before it.
"""

import re
from hashlib import sha256
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput

_FORM: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_ZEROS: Final = ("0" * 32, "0" * 16)


class Trace(NamedTuple):
    """A span and the trace it belongs to, in hexadecimal digits."""

    trace: str
    span: str
    flags: str

    @property
    def text(self) -> str:
        return f"00-{self.trace}-{self.span}-{self.flags}"


def parse_trace(text: str | None) -> Trace | None:
    """Returns what a `traceparent` says; None if it is not one."""
    found = _FORM.fullmatch(text) if text else None
    if found is None or found[1] == _ZEROS[0] or found[2] == _ZEROS[1]:
        return None
    return Trace(*found.groups())


def check_trace(field: str, text: str) -> None:
    """Raises `InvalidInput` unless it is a `traceparent`."""
    if parse_trace(text) is None:
        raise InvalidInput(field, "a W3C traceparent", text)


def attempt_trace(trace: Trace, job: int, attempt: int) -> Trace:
    """Returns the context of an attempt of a job with this context."""
    digest = sha256(f"{trace.trace}-{trace.span}-{job}-{attempt}".encode()).hexdigest()
    return trace._replace(span=digest[:16])

"""What stores keep of durable steps, and of the signals that jobs wait for."""

from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

FOREVER: Final = 253_402_300_799_000  # the end of the year 9999: when an endless wait is due


class StepKind(IntEnum):
    """What a step does. The numbers are stored."""

    CALL = 1
    SLEEP = 2
    SIGNAL = 3
    QUESTION = 4
    JOBS = 5


class StepState(IntEnum):
    """How far a step is. The numbers are stored."""

    PENDING = 1
    DONE = 2
    TIMED_OUT = 3


class StepRow(NamedTuple):
    """One step of a job.

    `attempt` is the attempt that wrote it, or asked for it last. `name` and `namespace` are those
    of the signal it waits for. `signal` is the number of the signal that ended it; while it is
    pending, the newest signal that came before the wait. `body` is the question, or the jobs it
    waits for, as JSON; `value` is the result, the payload, the answer, or the jobs that ended.
    `actor` sent or answered it.
    """

    job: int
    key: str
    kind: int
    state: int
    attempt: int
    asked_at: int
    until: int | None = None
    ended_at: int | None = None
    namespace: str = ""
    name: str | None = None
    signal: int | None = None
    actor: str | None = None
    body: bytes | None = None
    value: bytes | None = None

    @property
    def jobs(self) -> list[int]:
        """Returns the jobs that a wait for jobs is about."""
        jobs: list[int] = msgspec.json.decode(self.body or b"{}").get("jobs", [])
        return jobs

    @property
    def due_at(self) -> int:
        """Returns when its wait ends at the latest."""
        return FOREVER if self.until is None else self.until


class SignalRow(NamedTuple):
    """A signal; `is_open` is 1 until every job that waited for it has been told."""

    id: int
    namespace: str
    name: str
    key: str
    at: int
    is_open: int
    actor: str | None
    payload: bytes

"""The ids of jobs, workers, workflows and shapes, and the numbers of attempts and leases.

At run time all are plain integers. For the type checker each is a type of its own, so that no call
passes a worker where a job is expected. A number from outside gets its type where it is parsed or
looked up: `JobId(number)`.
"""

from typing import Final, NewType

JobId = NewType("JobId", int)
WorkerId = NewType("WorkerId", int)
WorkflowId = NewType("WorkflowId", int)
ShapeId = NewType("ShapeId", int)

AttemptNo = NewType("AttemptNo", int)
"""Counts the attempts of one job: 1, 2, 3 for people, and more in the stores after a restore."""

LeaseNo = NewType("LeaseNo", int)
"""Counts all attempts of an installation in one rising sequence."""

NO_WORKER: Final = WorkerId(0)
PER_EPOCH: Final = 1_000_000


def next_attempt(last: int, least: int) -> AttemptNo:
    """Returns the number after `last`; `least` is the first of this epoch, 0 before a restore."""
    return AttemptNo(max(last + 1, least + last % PER_EPOCH))


def shown_attempt(number: int, handed_back: int = 0) -> int:
    """Returns the number that people see; 0 before the first attempt."""
    return (number - 1) % PER_EPOCH + 1 - handed_back if number else 0

"""The ids of jobs, workers, workflows and shapes, and the numbers of attempts and leases.

At run time all are plain integers. For the type checker each is a type of its own, so that no call
passes a worker where a job is expected. A number from outside gets its type where it is parsed or
looked up: `JobId(number)`.
"""

from typing import Annotated, Final, NewType

from msgspec import Meta

JobId = NewType("JobId", int)
WorkerId = NewType("WorkerId", int)
WorkflowId = NewType("WorkflowId", int)
ShapeId = NewType("ShapeId", int)

AttemptNo = NewType("AttemptNo", int)
"""Counts the attempts of one job: 1, 2, 3 for people, and more in the stores after a restore."""

LeaseNo = NewType("LeaseNo", int)
"""Counts all attempts of an installation in one rising sequence."""

# Numbers in messages, with the bounds of the stores, checked where they are decoded.
Id = Annotated[int, Meta(ge=1, le=2**62)]  # of a job, workflow, worker or token
NameOrId = Id | str  # of a worker; the name counts before the id
Cursor = Annotated[int, Meta(ge=0, le=2**62)]  # the last id of a page; 0: from the start
Moment = Annotated[int, Meta(ge=0, le=2**62)]  # in ms; 0: unknown

NO_WORKER: Final = WorkerId(0)
PER_EPOCH: Final = 1_000_000


def next_attempt(last: int, least: int) -> AttemptNo:
    """Returns the number after `last`; `least` is the first of this epoch, 0 before a restore."""
    return AttemptNo(max(last + 1, least + last % PER_EPOCH))


def shown_attempt(number: int, handed_back: int = 0) -> int:
    """Returns the number that people see; 0 before the first attempt."""
    return (number - 1) % PER_EPOCH + 1 - handed_back if number else 0

"""What remains of events that retention has removed. A replay of the log starts here."""

from enum import IntEnum
from typing import NamedTuple


class BaselineKind(IntEnum):
    """What a baseline row describes. The numbers are stored."""

    HEAD = 0  # the last event it covers, and what belongs to no single row
    JOB = 1
    WORKER = 2
    WORKFLOW = 3
    LIMIT = 4


class BaselineRow(NamedTuple):
    """The state of one object after the removed events; `body` is JSON."""

    kind: int
    id: int
    body: str

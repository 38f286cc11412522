"""What remains of events that retention has removed: where a replay of the log begins."""

from enum import IntEnum
from typing import NamedTuple


class BaselineKind(IntEnum):
    """What a row of the baseline is about. The numbers are stored."""

    HEAD = 0  # up to which event, and what belongs to no single row
    JOB = 1
    WORKER = 2
    WORKFLOW = 3
    LIMIT = 4


class BaselineRow(NamedTuple):
    """The state of one thing after the removed events; `body` is JSON."""

    kind: int
    id: int
    body: str

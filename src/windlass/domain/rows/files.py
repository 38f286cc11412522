"""What stores keep of logs, artifacts and names; the bytes themselves are blobs."""

from enum import IntEnum
from typing import NamedTuple


class LogState(IntEnum):
    """How far a log has come. The numbers are stored."""

    NONE = 0
    STREAMING = 1
    COMMITTED = 2
    LOST = 3


class LogRow(NamedTuple):
    """The log of one attempt: `bytes` were written, all but those from `gap_from` to `gap_to`.

    Where nothing is missing both are 0. With several gaps they span all of them.
    """

    job: int
    attempt: int
    state: int
    bytes: int
    gap_from: int
    gap_to: int


class ArtifactRow(NamedTuple):
    """A named file that an attempt has left."""

    job: int
    attempt: int
    name: str
    sha256: str
    size: int
    content_type: str


class NameRow(NamedTuple):
    """What `$lookup` finds under a name: an artifact of a job."""

    namespace: str
    name: str
    job: int
    artifact: str
    sha256: str
    set_at: int


class Progress(NamedTuple):
    """How far an attempt says it is; `value` is JSON."""

    job: int
    attempt: int
    value: bytes
    at: int


class Dynamic(NamedTuple):
    """What the lookups of an attempt's arguments were resolved to; `body` is JSON."""

    job: int
    attempt: int
    body: bytes

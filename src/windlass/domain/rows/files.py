"""What stores keep about logs, artifacts and names; the bytes are blobs."""

from enum import IntEnum
from typing import Final, NamedTuple


class LogState(IntEnum):
    """The state of a log. The numbers are stored."""

    NONE = 0
    STREAMING = 1
    COMMITTED = 2
    LOST = 3


class LogRow(NamedTuple):
    """The log of one attempt: `bytes` were written, except those from `gap_from` to `gap_to`.

    If nothing is missing, both are 0. With several gaps they span all of them.
    """

    job: int
    attempt: int
    state: int
    bytes: int
    gap_from: int
    gap_to: int


UPLOADED: Final = 0  # the attempt number of files that a client uploaded for a job


class ArtifactRow(NamedTuple):
    """A named file produced by an attempt; if `UPLOADED`, its name is the digest."""

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


class UploadRow(NamedTuple):
    """A file that a client has uploaded for jobs; `used_at` is when it was last sent or used."""

    namespace: str
    sha256: str
    size: int
    content_type: str
    created_by: str
    used_at: int


class Progress(NamedTuple):
    """The progress that an attempt reports; `value` is JSON."""

    job: int
    attempt: int
    value: bytes
    at: int


class Dynamic(NamedTuple):
    """The resolved lookups in an attempt's arguments; `body` is JSON."""

    job: int
    attempt: int
    body: bytes

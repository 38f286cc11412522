"""Messages about logs, artifacts and names, version 1."""

from typing import Annotated, Literal

import msgspec

from windlass.domain.values.ids import Id

LogState = Literal["none", "streaming", "committed", "lost"]


class LogInfo(msgspec.Struct, frozen=True):
    state: LogState
    bytes: int


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a log. A long one is cut: it has `size` bytes. `at`: when the server got it."""

    number: int
    offset: int
    text: str
    size: int
    is_cut: bool = False
    at: str | None = None


class LogLines(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the log of one attempt, which has `bytes` in `total` lines so far.

    `is_over` says that nothing more can come. `colours` are the ANSI sequences in force where the
    first line begins, if they were set in the 64 KiB before it.
    """

    attempt: int
    state: LogState
    bytes: int
    total: int
    is_over: bool
    lines: tuple[LogLine, ...]
    colours: str = ""


class LogMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A matching line: its first match is at `offset`, with the text around it."""

    line: int
    offset: int
    before: str
    match: str
    after: str


class LogMatches(msgspec.Struct, frozen=True, kw_only=True):
    """Matching lines, in the order of the search.

    One call searches a limited number of bytes, `scanned`; the search continues at `next`. null: it
    is complete.
    """

    matches: tuple[LogMatch, ...]
    next: int | None
    scanned: int


class LogNext(msgspec.Struct, frozen=True):
    """Where the next bytes of a log go."""

    next: int


class LogEnd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bytes: int
    state: Literal["committed", "lost"]
    peak_memory: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0  # bytes; 0: not measured


class StackFrame(msgspec.Struct, frozen=True):
    """A place in the code: a call, or the current line of the innermost one."""

    file: str
    line: int
    function: str
    code: str = ""


class StackThread(msgspec.Struct, frozen=True):
    """The calls of one thread or task, the outermost first."""

    name: str
    frames: tuple[StackFrame, ...]


class StackReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker's answer to `StackWanted`; `problem` says why there is no stack."""

    request: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    threads: tuple[StackThread, ...] = ()
    problem: str | None = None


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """The stack of a running attempt's function; its own thread or task is first."""

    job: int
    attempt: int
    worker: str
    at: str
    threads: tuple[StackThread, ...]


class ArtifactInfo(msgspec.Struct, frozen=True):
    name: str
    sha256: str
    size: int
    content_type: str


class ArtifactList(msgspec.Struct, frozen=True):
    artifacts: list[ArtifactInfo]


class Upload(msgspec.Struct, frozen=True):
    """Where to upload an artifact; without `url`, through the server."""

    url: str | None = None
    headers: dict[str, str] = {}


class Uploaded(msgspec.Struct, frozen=True):
    """A file that jobs of a namespace may use: `{"$file": {"sha256": …, "name": …}}`."""

    namespace: str
    sha256: str
    size: int


class NameRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    job: Id
    artifact: str


class NameInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A name and the artifact it refers to."""

    name: str
    namespace: str
    job: int
    artifact: str
    sha256: str
    set_at: str


class NameList(msgspec.Struct, frozen=True):
    names: list[NameInfo]


class MediaDuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The duration of a job's media, as measured by its worker."""

    duration_ms: Annotated[int, msgspec.Meta(ge=1, le=2**53)]


class RunLimit(msgspec.Struct, frozen=True):
    """How long an attempt may run from its start; null means no limit."""

    timeout_ms: int | None

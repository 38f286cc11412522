"""Logs, artifacts and uploads."""

from collections.abc import AsyncIterator
from typing import Annotated, Final
from urllib.parse import quote

import msgspec

from windlass.domain.access.rights import Action
from windlass.domain.rows.files import ArtifactRow, LogState, UploadRow
from windlass.engine.attempts.log_segments import MAX_OFFSET
from windlass.engine.files import logs
from windlass.engine.files.log_pages import text_of
from windlass.engine.files.logs import (
    READ_LIMIT,
    LogPosition,
    LogQuery,
    LogReading,
    NextPart,
)
from windlass.messages.files import ArtifactList, LogLines, LogMatches, Stack, Uploaded
from windlass.operations.dispatch.call import BINARY, TEXT, Call, Stream
from windlass.operations.dispatch.routes import Routes
from windlass.operations.parse import moment_since, namespace_of
from windlass.operations.render import show_artifact

Number = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Attempt = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]  # as stores keep it
Size = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
LogPart = Annotated[int, msgspec.Meta(ge=1, le=READ_LIMIT)]
PageLines = Annotated[int, msgspec.Meta(ge=1, le=2_000)]
Found = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Lines = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=60)]

# Artifacts come from jobs: a browser must not run what they hold.
SAFE_HEADERS: Final = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'"
}

MAX_UPLOAD: Final = 2**40  # `upload_limit` is checked before a byte is read

routes = Routes("/api/v1/jobs/{job:int}", "files")
upload_routes = Routes("/api/v1/uploads", "files")


@routes.get("/log", needs=Action.READ_FILES, media_type=TEXT)
async def log(
    call: Call,
    job: Number,
    attempt: Attempt | None = None,
    offset: Size = 0,
    limit: LogPart | None = None,
    follow: bool = False,
    wait: Seconds | None = None,
    offset_attempt: Size = 0,
    tail: Lines | None = None,
    since: str | None = None,
    timestamps: bool = False,
) -> Stream:
    """Streams a job's log from `offset`; with `follow`, until it ends.

    Instead of an offset, `tail` starts with the last lines, and `since` with what came since a
    time or within a duration. `timestamps` puts before each line when the server received it.
    Without `follow`, it waits up to two seconds for the last output of a job that has just ended.

    With `wait`, it returns the next part as soon as there is one, or nothing after this many
    seconds. `offset` then counts in attempt `offset_attempt`: if a newer attempt has begun,
    its log is read from the start. Headers say where to read on, and whether the log is over.
    """
    services = call.services
    await services.queries.check_visible([job], call.who)
    if not follow and wait is None and not offset:  # A reader of parts has waited at the first.
        await services.files.settle_log(job, attempt)
    if tail is not None or since is not None:
        since_ms = None if since is None else moment_since(since, await services.engine.now())
        offset = await services.files.log_start(job, attempt, tail, since_ms)
    if wait is not None:
        position = LogPosition(offset_attempt, offset)
        part = await services.files.next_part(
            job, attempt, position, round(wait * 1000), limit or READ_LIMIT, timestamps
        )
        return Stream(part.reading.chunks, TEXT, _part_headers(part))
    if follow:
        await services.files.log(job, attempt)  # a missing log is reported before the stream
        growing = services.files.follow_growing(job, attempt, offset, timestamps)
        return Stream(growing, TEXT, SAFE_HEADERS, endless=True)
    reading = await services.files.read_log(job, attempt, offset, limit or MAX_OFFSET)
    if timestamps:
        reading = await services.files.with_times(reading, offset)
    return Stream(reading.chunks, TEXT, _log_headers(reading))


@routes.get("/log/lines", needs=Action.READ_FILES)
async def log_lines(
    call: Call,
    job: Number,
    attempt: Attempt | None = None,
    line: Number | None = None,
    offset: Size | None = None,
    count: PageLines = 200,
    wait: Seconds = 0,
    beyond: Size = 0,
) -> LogLines:
    """Returns lines of a log: from number `line` on, from that at byte `offset` on, or the last.

    With `wait`, it answers when the log has more than `beyond` bytes or is over, or after this
    many seconds.
    """
    services = call.services
    await services.queries.check_visible([job], call.who)
    found = await services.files.log(job, attempt)
    if wait:
        found = await services.files.follow_log(job, attempt, beyond, round(wait * 1000))
    page = await services.files.log_page(found, count, line, offset)
    return show_log_page(page, await services.files.log_is_over(page.row))


@routes.get("/log/search", needs=Action.READ_FILES, costly=True)
async def search_log(
    call: Call,
    job: Number,
    text: str,
    attempt: Attempt | None = None,
    regex: bool = False,
    ignore_case: bool = False,
    start: Size | None = None,
    backwards: bool = False,
    limit: Found = 100,
) -> LogMatches:
    """Searches a log: from byte `start` on, or backwards before it.

    `text` is found as it is, or is a regular expression (RE2). Each call has a bound; go on
    with `start` = `next`.
    """
    await call.services.queries.check_visible([job], call.who)
    query = LogQuery(text, regex, ignore_case, start, backwards, limit)
    return await call.services.files.search_log(job, attempt, query)


@routes.get("/stack", needs=Action.READ_FILES, costly=True)
async def stack(call: Call, job: Number) -> Stack:
    """Shows where the Python function of a running job is now; its worker is asked."""
    await call.services.queries.check_visible([job], call.who)
    return await call.services.files.stacks.ask(job)


@routes.get("/artifacts", needs=Action.READ_FILES)
async def artifacts(call: Call, job: Number) -> ArtifactList:
    """Returns the artifacts of the accepted attempt."""
    await call.services.queries.check_visible([job], call.who)
    found = await call.services.files.artifacts(job)
    return ArtifactList([show_artifact(row) for row in found])


@routes.get("/artifacts/{name:path}", needs=Action.READ_FILES, media_type=BINARY)
async def artifact(call: Call, job: Number, name: str) -> Stream:
    """Streams one artifact, for people; workers read the inputs of their attempts."""
    await call.services.queries.check_visible([job], call.who)
    return download(*await call.services.files.open_artifact(job, name))


@upload_routes.put("/{sha256:str}", needs=Action.SUBMIT_JOBS, body_limit=MAX_UPLOAD, raw_body=True)
async def upload(
    call: Call, sha256: str, size: Size, namespace: str | None = None, content_type: str = ""
) -> Uploaded:
    """Stores a file for jobs of a namespace, under its SHA-256; it may be sent again."""
    own = namespace_of(namespace, call.who, Action.SUBMIT_JOBS)
    sent = UploadRow(own, sha256, size, content_type, call.who.name, used_at=0)
    row = await call.services.files.store_upload(sent, call.stream())
    return Uploaded(row.namespace, row.sha256, row.size)


def download(row: ArtifactRow, chunks: AsyncIterator[bytes]) -> Stream:
    """Returns an artifact as a file to save, never to show."""
    headers = {
        **SAFE_HEADERS,
        "Content-Disposition": _disposition(row.name.rpartition("/")[2]),
        "Windlass-Sha256": row.sha256,
    }
    return Stream(chunks, BINARY, headers)


def _disposition(file: str) -> str:
    """Returns a header that makes any browser save the file under its name."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in file)
    full = "" if plain == file else f"; filename*=UTF-8''{quote(file, safe='')}"
    return f'attachment; filename="{plain}"{full}'


def _part_headers(part: NextPart) -> dict[str, str]:
    return {**_log_headers(part.reading), "Windlass-Log-Over": str(part.is_over).lower()}


def _log_headers(reading: LogReading) -> dict[str, str]:
    return {
        "Windlass-Log-Attempt": str(reading.shown),
        "Windlass-Log-State": LogState(reading.row.state).name.lower(),
        "Windlass-Log-Bytes": str(reading.row.bytes),
        "Windlass-Log-Next": str(reading.next),
        **SAFE_HEADERS,
    }


def show_log_page(page: logs.LogPage, is_over: bool) -> LogLines:
    """Returns a page of a log as a message."""
    return LogLines(
        attempt=page.shown,
        state=LogState(page.row.state).name.lower(),  # type: ignore[arg-type]
        bytes=page.row.bytes,
        total=page.total,
        is_over=is_over,
        lines=tuple(page.lines),
        colours=text_of(page.colours),
    )

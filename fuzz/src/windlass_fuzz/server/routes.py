"""Routes that show commit fuzzing; nothing here changes a pipeline."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from windlass.domain.access.rights import Action
from windlass.domain.values.errors import NotFound
from windlass.operations.dispatch.call import BINARY, Stream
from windlass.operations.dispatch.routes import Routes
from windlass.server.http.call import HttpCall
from windlass_fuzz.server.messages import (
    FuzzCoverage,
    FuzzFinding,
    FuzzReached,
    FuzzSolverList,
    FuzzStatistics,
    FuzzStatus,
)

if TYPE_CHECKING:
    from windlass_fuzz.server.reader import BucketReader

# Inputs come from fuzzers: a browser must not run them.
SAFE_HEADERS: Final = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}

# The report shows foreign sources. Its pages keep their origin, so that links between them carry
# the session, but nothing in them may run, send or be framed.
PAGE_HEADERS: Final = {
    "Content-Security-Policy": "sandbox allow-same-origin; default-src 'none'; "
    "style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
HTML: Final = "text/html; charset=utf-8"
CSS: Final = "text/css; charset=utf-8"

routes = Routes("/api/v1/fuzz", "fuzzing")


@routes.get("", needs=Action.READ_PLUGINS)
async def solvers(call: HttpCall) -> FuzzSolverList:
    """Returns the solvers that this server shows, with counts."""
    reader = _reader(call)
    return FuzzSolverList([] if reader is None else await reader.solvers())


@routes.get("/{solver:str}", needs=Action.READ_PLUGINS)
async def status(call: HttpCall, solver: str) -> FuzzStatus:
    """Returns the queue, the builds, the schedule and the findings of a solver."""
    return await _reader_of(call, solver).status(solver)


@routes.get("/{solver:str}/coverage", needs=Action.READ_PLUGINS)
async def coverage(call: HttpCall, solver: str) -> FuzzCoverage:
    """Returns which functions the tests of a solver reach, counted by source file."""
    return await _reader_of(call, solver).coverage(solver)


@routes.get("/{solver:str}/statistics", needs=Action.READ_PLUGINS)
async def statistics(call: HttpCall, solver: str) -> FuzzStatistics:
    """Returns executions, coverage, corpus and findings over time, and what each commit added."""
    return await _reader_of(call, solver).statistics(solver)


@routes.get("/{solver:str}/reached/{commit:str}", needs=Action.READ_PLUGINS)
async def reached(call: HttpCall, solver: str, commit: str) -> FuzzReached:
    """Returns what the fuzzing of a commit was the first to reach."""
    return await _reader_of(call, solver).reached(solver, commit)


@routes.get("/{solver:str}/report/{page:str}", needs=Action.READ_PLUGINS, media_type=HTML)
async def report(call: HttpCall, solver: str, page: str) -> Stream:
    """Returns a page of the HTML coverage report; the first is `index.html`."""
    found = await _reader_of(call, solver).report_page(solver, page)
    return Stream(_once(found), CSS if page.endswith(".css") else HTML, PAGE_HEADERS)


@routes.get("/{solver:str}/findings/{finding:str}", needs=Action.READ_PLUGINS)
async def finding(call: HttpCall, solver: str, finding: str) -> FuzzFinding:
    """Returns one finding with its report."""
    return await _reader_of(call, solver).finding(solver, finding)


@routes.get(
    "/{solver:str}/findings/{finding:str}/input", needs=Action.READ_PLUGINS, media_type=BINARY
)
async def finding_input(call: HttpCall, solver: str, finding: str) -> Stream:
    """Returns the input that shows a finding, to be saved."""
    found = await _reader_of(call, solver).input(solver, finding)
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}"}
    return Stream(_once(found.data), BINARY, {**SAFE_HEADERS, **headers})


def _reader(call: HttpCall) -> "BucketReader | None":
    part = call.services.plugins.get("fuzz")
    reader: BucketReader | None = None if part is None else part.service
    return reader


def _reader_of(call: HttpCall, solver: str) -> "BucketReader":
    reader = _reader(call)
    if reader is None:
        raise NotFound("solver", solver, "start the server with --fuzz SOLVER.yaml to show it")
    return reader


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data

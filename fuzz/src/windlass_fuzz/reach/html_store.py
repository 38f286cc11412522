"""The newest HTML coverage report in the bucket: a description, and its pages beside it.

The pages are written first under a unique name, then the description that names them, and then the
pages of older reports are deleted: a reader finds a whole report or none.
"""

import gzip
import re
import zlib
from pathlib import Path
from typing import Final

import msgspec

from windlass.domain.values.errors import NotFound
from windlass_fuzz.buckets.layout import report_prefix
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.state.pipeline import Pipeline

DESCRIPTION: Final = "report.json"
MAX_PAGE: Final = 16 * 1024 * 1024
MAX_REPORT: Final = 1024 * 1024 * 1024
MAX_DESCRIPTION: Final = 64 * 1024
_PAGE: Final = re.compile(r"(?:index|page\d{1,6})\.(?:html|css)\Z")
_ID: Final = re.compile(r"[0-9A-Za-z-]{1,64}\Z")


class TargetReport(msgspec.Struct, frozen=True, kw_only=True):
    """One target of a matrix: its first page and figures, or the `problem` with it."""

    target: str
    page: str = ""
    tool: str = ""
    inputs: int = 0
    complete: bool = False
    functions: int = 0
    all_functions: int = 0
    lines: int = 0
    all_lines: int = 0
    problem: str = ""


class ReportInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a report. `complete` says that all inputs ran in time.

    With several `targets`, each has its own pages. The figures count what any target reaches.
    """

    id: str
    commit: str
    made_at_ms: int
    tool: str
    inputs: int
    complete: bool
    functions: int
    all_functions: int
    lines: int
    all_lines: int
    pages: int = 0
    targets: list[TargetReport] = []


class HtmlStore:
    """The report of one solver."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._bucket = pipeline.bucket
        self._prefix = report_prefix(pipeline.solver)

    async def save(self, folder: Path, info: ReportInfo) -> ReportInfo:
        """Stores the pages in a folder as the newest report, except pages that are too large."""
        pages = [path for path in sorted(folder.iterdir()) if _PAGE.match(path.name)]
        if sum(path.stat().st_size for path in pages) > MAX_REPORT:
            message = f"the HTML report has more than {MAX_REPORT} bytes; it was not stored"
            raise InvalidSetting("coverage report", message)
        kept = [path for path in pages if path.stat().st_size <= MAX_PAGE]
        for path in kept:
            body = gzip.compress(path.read_bytes(), mtime=0)
            await self._bucket.put(f"{self._prefix}/{info.id}/{path.name}.gz", body)
        info = msgspec.structs.replace(info, pages=len(kept))
        await self._bucket.put(f"{self._prefix}/{DESCRIPTION}", msgspec.json.encode(info))
        await self._forget_others(info.id)
        return info

    async def info(self) -> ReportInfo | None:
        """Returns the description; None if there is no report that can be read."""
        stored = await self._bucket.get(f"{self._prefix}/{DESCRIPTION}")
        if stored is None or len(stored.body) > MAX_DESCRIPTION:
            return None
        try:
            found = msgspec.json.decode(stored.body, type=ReportInfo)
        except msgspec.MsgspecError:
            return None
        named = [one.page for one in found.targets if one.page]
        return found if _ID.match(found.id) and all(map(_PAGE.match, named)) else None

    async def page(self, name: str) -> bytes:
        """Returns a page of the newest report; raises `NotFound` for any other name."""
        info = await self.info() if _PAGE.match(name) else None
        key = "" if info is None else f"{self._prefix}/{info.id}/{name}.gz"
        stored = await self._bucket.get(key) if key else None
        if stored is None:
            raise NotFound("page of the coverage report", name)
        try:
            return _decompress(stored.body)
        except (zlib.error, EOFError):
            raise NotFound("page of the coverage report", name) from None

    async def _forget_others(self, current: str) -> None:
        keys = [item.key async for item in self._bucket.list(self._prefix)]
        kept = (f"{self._prefix}/{current}/", f"{self._prefix}/{DESCRIPTION}")
        await self._bucket.delete([key for key in keys if not key.startswith(kept)])


def _decompress(body: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # with the header of gzip
    content = unpacker.decompress(body, MAX_PAGE)
    if not unpacker.eof:
        raise EOFError
    return content

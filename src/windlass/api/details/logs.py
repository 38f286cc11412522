"""Logs as messages: pages of lines, and what a search found."""

from windlass.domain.rows.files import LogState
from windlass.domain.values.ids import shown_attempt
from windlass.domain.values.quantities import format_moment
from windlass.engine.files import log_pages, log_search, logs
from windlass.wire.files import LogLine, LogLines, LogMatch, LogMatches


def show_log_page(page: logs.LogPage, is_over: bool) -> LogLines:
    """Returns a page of a log as a message."""
    return LogLines(
        attempt=shown_attempt(page.row.attempt),
        state=LogState(page.row.state).name.lower(),  # type: ignore[arg-type]
        bytes=page.row.bytes,
        total=page.total,
        is_over=is_over,
        lines=tuple(map(_line, page.lines)),
        colours=_text(page.colours),
    )


def show_log_matches(found: log_search.LogMatches) -> LogMatches:
    """Returns what a search found as a message."""
    return LogMatches(
        matches=tuple(
            LogMatch(
                line=one.line, offset=one.offset, before=_text(one.before),
                match=_text(one.match), after=_text(one.after),
            )
            for one in found.matches
        ),
        next=found.next,
        scanned=found.scanned,
    )  # fmt: skip


def _line(line: log_pages.LogLine) -> LogLine:
    return LogLine(
        number=line.number, offset=line.offset, text=_text(line.data), size=line.size,
        is_cut=len(line.data) < line.size,
        at=None if line.at_ms is None else format_moment(line.at_ms),
    )  # fmt: skip


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")

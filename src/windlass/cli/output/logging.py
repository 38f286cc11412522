"""The log of the processes that `windlass` starts, on standard error."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import msgspec
import structlog

from windlass.cli.output.escaping import escape, escape_json, escape_line
from windlass.domain.rows.events import Level

TRACEBACK: Final = "exception"

Entry = MutableMapping[str, Any]


def configure_logging(level: Level = Level.INFO, *, json: bool | None = None) -> None:
    """Logs lines for people or JSON; by default lines on a terminal and JSON elsewhere."""
    plain = sys.stderr.isatty() if json is None else not json
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _for_people if plain else _spread_facts,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
            if plain
            else structlog.processors.JSONRenderer(serializer=_to_json),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(int(level)),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # What libraries log gets the same form.
    logging.basicConfig(handlers=[_Forward()], level=max(level, Level.WARNING), force=True)


class _Forward(logging.Handler):
    """Passes what libraries log to our log."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger()
        log.log(record.levelno, record.getMessage(), exc_info=record.exc_info, by=record.name)


def _for_people(logger: Any, method: str, entry: Entry) -> Entry:
    """Leaves out repeated facts, and escapes text from outside.

    A line about an event has the time of the event, which may be a second before that of the line.
    Names and reasons come from jobs and callers. Only tracebacks have several lines.
    """
    del logger, method
    happened = entry.pop("facts", {}).get("at")
    if happened is not None:
        entry["timestamp"] = happened
    for key, value in entry.items():
        if isinstance(value, str):
            entry[key] = escape(value) if key == TRACEBACK else escape_line(value)
    return entry


def _spread_facts(logger: Any, method: str, entry: Entry) -> Entry:
    """Shows the facts of an event as fields of their own."""
    del logger, method
    return {**entry.pop("facts", {}), **entry}


def _to_json(entry: Entry, **_options: Any) -> str:
    return escape_json(msgspec.json.encode(entry, enc_hook=str).decode())

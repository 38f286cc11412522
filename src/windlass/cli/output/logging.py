"""How commands that run parts of Windlass log: the options, and the two forms of the log."""

import logging
import os
import sys
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
import structlog
from cyclopts import Group, Parameter

from windlass.cli.output.text import escape, escape_json, escape_line
from windlass.domain.rows.events import Level
from windlass.domain.values.errors import InvalidInput

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


LOG: Final = Group("Log", sort_key=6)
LEVEL_VARIABLE: Final = "WINDLASS_LOG_LEVEL"
FORMAT_VARIABLE: Final = "WINDLASS_LOG_FORMAT"

LevelName = Literal["debug", "info", "warning", "error", "off"]
FormatName = Literal["auto", "plain", "json"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """How much a process logs to standard error, and in which form."""

    log_level: Annotated[
        LevelName | None,
        Parameter(
            group=LOG,
            help="What to log: state changes of jobs are info, failures and lost workers are "
            "warnings. debug logs everything, info summarizes bursts. "
            f"Default: {LEVEL_VARIABLE}, else info.",
        ),
    ] = None
    log_format: Annotated[
        FormatName | None,
        Parameter(
            group=LOG,
            help="plain lines or json; auto is plain on a terminal. "
            f"Default: {FORMAT_VARIABLE}, else auto.",
        ),
    ] = None


DEFAULT_LOG: Final = LogOptions()


def _chosen(flag: str | None, variable: str, known: object, default: str) -> str:
    """Returns what the flag says, else the environment, else the default."""
    value = flag or os.environ.get(variable) or default
    if value not in get_args(known):
        raise InvalidInput(variable, f"one of {', '.join(get_args(known))}", value)
    return value


def use_log(options: LogOptions) -> Level:
    """Configures the log, also of processes that inherit the environment; returns its level."""
    name = _chosen(options.log_level, LEVEL_VARIABLE, LevelName, "info")
    form = _chosen(options.log_format, FORMAT_VARIABLE, FormatName, "auto")
    level = Level[name.upper()]
    configure_logging(level, json=None if form == "auto" else form == "json")
    os.environ |= {LEVEL_VARIABLE: name, FORMAT_VARIABLE: form}
    return level

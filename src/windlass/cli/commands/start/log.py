"""The log of a server or a worker: its options, and its start."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple, get_args

from cyclopts import Group, Parameter

from windlass.cli.output.logging import configure_logging
from windlass.domain.rows.events import Level
from windlass.domain.values.errors import InvalidInput

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

    def chosen(self, environment: Mapping[str, str]) -> "ChosenLog":
        """Returns the flags, else what the environment says, else the defaults."""
        level = self.log_level or _read(environment, LEVEL_VARIABLE, LevelName, "info")
        form = self.log_format or _read(environment, FORMAT_VARIABLE, FormatName, "auto")
        return ChosenLog(level, form)


class ChosenLog(NamedTuple):
    """The names of the chosen level and format."""

    level: str
    form: str

    @property
    def variables(self) -> dict[str, str]:
        """Returns the environment in which a process logs alike."""
        return {LEVEL_VARIABLE: self.level, FORMAT_VARIABLE: self.form}


DEFAULT_LOG: Final = LogOptions()


def _read(environment: Mapping[str, str], variable: str, known: object, default: str) -> str:
    value = environment.get(variable) or default
    if value not in get_args(known):
        raise InvalidInput(variable, f"one of {', '.join(get_args(known))}", value)
    return value


def use_log(options: LogOptions) -> Level:
    """Configures the log, also of processes that inherit the environment; returns its level."""
    chosen = options.chosen(os.environ)
    level = Level[chosen.level.upper()]
    configure_logging(level, json=None if chosen.form == "auto" else chosen.form == "json")
    os.environ |= chosen.variables
    return level

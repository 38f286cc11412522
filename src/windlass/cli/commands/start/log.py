"""Configures the log of a server or a worker."""

import os

from windlass.cli.options.log import LogOptions
from windlass.cli.output.logging import configure_logging
from windlass.domain.rows.events import Level


def use_log(options: LogOptions) -> Level:
    """Configures the log, also of processes that inherit the environment; returns its level."""
    chosen = options.chosen(os.environ)
    level = Level[chosen.level.upper()]
    configure_logging(level, json=None if chosen.form == "auto" else chosen.form == "json")
    os.environ |= chosen.variables
    return level

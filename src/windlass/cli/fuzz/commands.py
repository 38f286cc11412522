"""Registers all commands of `windlass fuzz`."""

from windlass.cli.fuzz import (
    check,
    findings,
    manager,
    queue,
    reproduce,
    roles,
    setup,
    status,
    steps,
)
from windlass.cli.fuzz.app import fuzz
from windlass.cli.fuzz.stats import command as stats

__all__ = ["fuzz"]

# Importing these modules registers their commands.
MODULES = (setup, manager, roles, steps, queue, check, findings, reproduce, status, stats)

"""Registers all commands of `windlass fuzz`."""

from windlass_fuzz.cli import (
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
from windlass_fuzz.cli.app import fuzz
from windlass_fuzz.cli.stats import command as stats

__all__ = ["fuzz"]

# Importing these modules registers their commands.
MODULES = (setup, manager, roles, steps, queue, check, findings, reproduce, status, stats)

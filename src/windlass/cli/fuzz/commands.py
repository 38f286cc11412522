"""Registers all commands of `windlass fuzz`."""

from windlass.cli.fuzz import findings, manager, queue, roles, setup, status, steps
from windlass.cli.fuzz.app import fuzz

__all__ = ["fuzz"]

# Importing these modules registers their commands.
MODULES = (setup, manager, roles, steps, queue, findings, status)

"""Registers all commands of `windlass fuzz`."""

from windlass.cli.fuzz import findings as fuzz_findings
from windlass.cli.fuzz import manager as fuzz_manager
from windlass.cli.fuzz import queue as fuzz_queue
from windlass.cli.fuzz import roles as fuzz_work
from windlass.cli.fuzz import setup as fuzz_setup
from windlass.cli.fuzz import status as fuzz_status
from windlass.cli.fuzz import steps as fuzz_steps
from windlass.cli.fuzz.app import fuzz

__all__ = ["fuzz"]

# Importing these modules registers their commands.
PARTS = (fuzz_setup, fuzz_manager, fuzz_work, fuzz_steps, fuzz_queue, fuzz_findings, fuzz_status)

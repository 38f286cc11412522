"""`windlass fuzz`: all of its commands."""

from windlass.cli import (
    fuzz_findings,
    fuzz_manager,
    fuzz_queue,
    fuzz_setup,
    fuzz_status,
    fuzz_steps,
    fuzz_work,
)
from windlass.cli.fuzz_app import fuzz

__all__ = ["fuzz"]

# Importing them is what gives `fuzz` its commands.
PARTS = (fuzz_setup, fuzz_manager, fuzz_work, fuzz_steps, fuzz_queue, fuzz_findings, fuzz_status)

"""Windlass: a job scheduler for fleets of workers."""

__version__ = "0.1.0"

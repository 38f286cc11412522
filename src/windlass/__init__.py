"""Windlass: a job scheduler for fleets of workers."""

from importlib.metadata import version

from windlass.client.client import AsyncClient, Client, JobFailed
from windlass.tasks import current, task
from windlass.wire.jobs import JobRequest

__all__ = ["AsyncClient", "Client", "JobFailed", "JobRequest", "current", "task"]

__version__ = version("windlass")

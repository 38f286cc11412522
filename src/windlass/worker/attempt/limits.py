"""The limits of a job's programs: the least of what the job, its executor and the worker say."""

from collections.abc import Iterable

from windlass.domain.job.forms import JobLimits, milliseconds
from windlass.ports.executor import Limits


def combined(given: Limits | None, own: JobLimits | None, most: JobLimits | None) -> Limits | None:
    """Returns the limits of a program; `given` are those that its executor asks for."""
    if own is None and most is None:
        return given
    parts = [part for part in (given, _limits(own), _limits(most)) if part is not None]
    return Limits(
        _least(part.memory_bytes for part in parts),
        _least(part.cpu_seconds for part in parts),
        () if given is None else given.cpus,
        _least(part.processes for part in parts),
        _least(part.open_files for part in parts),
        _least(part.disk_bytes for part in parts),
    )


def _limits(limits: JobLimits | None) -> Limits | None:
    if limits is None:
        return None
    cpu_ms = milliseconds(limits.cpu_time) or 0
    return Limits(
        int(limits.memory or 0),
        -(-cpu_ms // 1000),
        (),
        limits.processes or 0,
        limits.open_files or 0,
        int(limits.disk or 0),
    )


def _least(amounts: Iterable[int]) -> int:
    return min((amount for amount in amounts if amount), default=0)

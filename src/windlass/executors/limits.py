"""What follows for a job whose program has exceeded a limit."""

import signal
from typing import Final

from windlass.domain.values.quantities import readable_duration, readable_limit
from windlass.ports.executor import Exit, Limits, Result

NO_LIMITS: Final = Limits()


def over_limit(end: Exit) -> Result | None:
    """Returns the failure of a program that exceeded a limit; None if it did not."""
    limits = end.limits or NO_LIMITS
    sent: dict[int, int] = {signal.SIGXCPU: limits.cpu_seconds, signal.SIGXFSZ: limits.disk_bytes}
    if end.signal in sent and not sent[end.signal]:
        return None  # The kernel sends these signals for limits, but so may anybody.
    message = {
        "memory": _memory(limits),
        "cpu_time": f"CPU time over its limit of {readable_duration(limits.cpu_seconds * 1000)}",
        "processes": f"more processes than its limit of {limits.processes}",
        "disk": f"disk use over its limit of {readable_limit(limits.disk_bytes)}",
    }.get("memory" if end.out_of_memory else end.over)
    if message is None or end.code == 0:
        return None
    return Result(
        outcome="failed", failure="resource", exit_code=end.code, message=message,
        own_limit=is_own(end),
    )  # fmt: skip


def is_own(end: Exit) -> bool:
    """Returns whether a program exceeded its own limit, rather than the machine's."""
    return not end.out_of_memory or (end.limits or NO_LIMITS).memory_bytes > 0


def hint(end: Exit) -> str:
    """Returns the limits, one of which may have caused a failure that only the program saw."""
    limits = end.limits or NO_LIMITS
    shown = {
        "memory": readable_limit(limits.memory_bytes) if limits.memory_bytes else "",
        "processes": str(limits.processes or ""),
        "open_files": str(limits.open_files or ""),
        "disk": readable_limit(limits.disk_bytes) if limits.disk_bytes else "",
    }
    given = [f"{name} {text}" for name, text in shown.items() if text]
    return f" (its limits: {', '.join(given)})" if given else ""


def _memory(limits: Limits) -> str:
    allowed = limits.memory_bytes
    of_what = f"its limit of {readable_limit(allowed)}" if allowed else "the machine's"
    return f"out of memory: the program used more than {of_what}"

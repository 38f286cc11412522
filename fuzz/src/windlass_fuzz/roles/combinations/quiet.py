"""Decides when an engine has found nothing new for long enough.

On a busy machine an engine may get a second of a processor in a minute. That it found nothing then
says little, so only the time that its programs ran counts.
"""

import os
import resource
from dataclasses import dataclass
from typing import Final

BUSY: Final = 2  # half of the time on its cores is what an engine may lack for other reasons
MAX_STRETCH: Final = 20  # how much longer a part of the run may be than the quiet time


@dataclass(slots=True)
class Quiet:
    """How long a run that uses these `cores` found nothing new; it ends after `limit_ms`.

    The engine runs in parts of `part_ms`, each long enough to end the run if it finds nothing.
    """

    limit_ms: int
    cores: int
    part_ms: int = 0
    silent_ms: int = 0

    def __post_init__(self) -> None:
        self.part_ms = self.limit_ms

    def note(self, new: bool, took_ms: int, used_ms: int, busy: bool) -> bool:
        """Notes a part that `used` its processors so long; returns whether the run has ended."""
        ran_ms = min(took_ms, used_ms * BUSY // self.cores) if busy else took_ms
        self.silent_ms = 0 if new else self.silent_ms + ran_ms
        stretch = min(took_ms / max(ran_ms, 1), MAX_STRETCH)
        self.part_ms = int(max(self.limit_ms - self.silent_ms, 0) * stretch)
        return self.silent_ms >= self.limit_ms


def used_ms() -> int:
    """Returns the processor time of all programs that we ran and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * 1000)


def is_busy() -> bool:
    """Returns whether programs wait for a processor of this machine."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)

"""Whether any worker could ever run a shape: judged by everything workers have reported.

A worker that is away, drained or disabled counts, with the best it reported within a week. So a job
is refused for what the fleet lacks, never for what is only missing at the moment.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from windlass.domain.job.forms import NEVER, Duration, milliseconds
from windlass.domain.matching.matching import Mismatch
from windlass.domain.matching.shapes import Shape, shape_mismatches

REMEMBERED_MS: Final = 7 * 86_400_000
MISMATCH: Final = "capability_mismatch"


def grace_ms(own: Duration | None, configured: int | None) -> int | None:
    """Returns how long a job that no worker can run waits, in milliseconds; None: for ever."""
    if own is None:
        return configured
    return None if own == NEVER else milliseconds(own)


def nearest(shape: Shape, fleet: Iterable[Mapping[str, object]]) -> tuple[Mismatch, ...] | None:
    """Returns what the closest match of all workers lacks for this shape; () if one can run it.

    Returns None if there is no worker to judge by.
    """
    best: tuple[Mismatch, ...] | None = None
    for metadata in fleet:
        found = tuple(shape_mismatches(shape, metadata))
        if best is None or len(found) < len(best):
            best = found
        if not found:
            return ()
    return best


def describe(best: tuple[Mismatch, ...] | None, workers: int) -> str:
    """Returns why no worker can run it, as the reason of the rejection."""
    if best is None:
        return f"{MISMATCH}: no worker is known"
    among = (
        "the only known worker" if workers == 1 else f"the closest match of {workers} known workers"
    )
    return f"{MISMATCH}: {among}: {'; '.join(mismatch.text for mismatch in best)}"

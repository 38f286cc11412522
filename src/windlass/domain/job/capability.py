"""Whether anybody could ever run a shape: judged against all that workers have reported.

A worker that is away, drained or disabled counts, with the best it reported in a week: a
job is refused for what the fleet has not, never for what is only missing at the moment.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from windlass.domain.job.forms import NEVER, Duration, milliseconds
from windlass.domain.matching.matching import Mismatch
from windlass.domain.matching.shapes import Shape, shape_mismatches

REMEMBERED_MS: Final = 7 * 86_400_000
MISMATCH: Final = "capability_mismatch"


def grace_ms(own: Duration | None, configured: int | None) -> int | None:
    """Returns how long a job that nobody can run waits, in milliseconds; None: for ever."""
    if own is None:
        return configured
    return None if own == NEVER else milliseconds(own)


def nearest(shape: Shape, fleet: Iterable[Mapping[str, object]]) -> tuple[Mismatch, ...] | None:
    """Returns what keeps the best of all workers from this shape; () if one can run it.

    None where there is no worker at all, of which nothing can be said.
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
    """Returns why nobody can run it, for the reason of the rejection."""
    if best is None:
        return f"{MISMATCH}: no worker is known"
    among = "the only known worker" if workers == 1 else f"the nearest of {workers} known workers"
    return f"{MISMATCH}: {among}: {'; '.join(mismatch.text for mismatch in best)}"

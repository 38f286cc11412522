"""Where jobs stand in the order: none behind one that waits for it.

What is about to be passed on may leave it otherwise for a moment, so nothing is said while
there are intents.
"""

from windlass.engine.verify.findings import Findings
from windlass.engine.verify.known import SnapshotIndex


def check_order(known: SnapshotIndex, found: Findings) -> None:
    """Checks S20: the rank of an open job is at least as good as that of all it blocks."""
    if known.snapshot.cascades:
        return
    for job, edges in known.snapshot.dependents:
        row = known.jobs.get(job)
        if row is None or not row.facts.is_open:
            continue
        for edge in edges:
            waiting = known.jobs.get(edge >> 1)
            if waiting is None or not waiting.facts.is_open or waiting.facts.rank >= row.facts.rank:
                continue
            found.add("S20", f"stands behind job {edge >> 1}, which waits for it", job)
            break

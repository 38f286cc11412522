"""Checks the order of jobs: none is ranked behind one that waits for it.

While cascades are open this may not hold, so then nothing is checked.
"""

from windlass.engine.verify.findings import Findings
from windlass.engine.verify.known import SnapshotIndex


def check_order(known: SnapshotIndex, found: Findings) -> None:
    """S20: the rank of an open job is at least as good as that of all jobs it blocks."""
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
            found.add("S20", f"is ranked behind job {edge >> 1}, which waits for it", job)
            break

"""Checks a finished run for unfinished and missing jobs, and hashes its log."""

import hashlib
from collections.abc import Iterable

from windlass.domain.lifecycle.workflow_state import ENDED
from windlass.engine.verify import Violation
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import ReadTx

CHUNK = 5_000


def find_leftovers(snapshot: Snapshot) -> list[Violation]:
    """L1–L4, L6, L7: once faults have stopped, every job and workflow ends."""
    found: list[Violation] = []
    places = (
        ("L1", "ready", snapshot.ready),
        ("L1", "parked", snapshot.parked),
        ("L7", "due", snapshot.due),
        ("L3", "waits", snapshot.waits),
        ("L2", "leases", snapshot.leases),
    )
    for invariant, place, rows in places:
        found += [Violation(invariant, f"still in {place}: {row}", row.job) for row in rows]
    for cascade in snapshot.cascades:
        message = f"a cascade was never finished: {cascade}"
        found.append(Violation("L3", message, cascade.job or 0))
    for record in snapshot.jobs:
        if record.facts.is_open:
            found.append(Violation("L7", "never ended", record.facts.id))
    for workflow in snapshot.workflows:
        if workflow.state not in ENDED:
            found.append(Violation("L4", f"workflow {workflow.id} never ended: {workflow}"))
    return found


def find_missing(snapshot: Snapshot, acknowledged: Iterable[int]) -> list[Violation]:
    """S1: every acknowledged job can be read."""
    there = {record.facts.id for record in snapshot.jobs}
    lost = sorted(set(acknowledged) - there)
    return [Violation("S1", "was acknowledged and is gone", job) for job in lost]


async def hash_log(tx: ReadTx) -> tuple[int, str]:
    """Returns how many events there are, and a hash of all their columns."""
    digest = hashlib.sha256()
    count = after = 0
    while chunk := await tx.log.read(after, CHUNK):
        for event in chunk:
            digest.update(repr((*event[:2], int(event.kind), *event[3:])).encode())
        count += len(chunk)
        after = chunk[-1].seq
    return count, digest.hexdigest()

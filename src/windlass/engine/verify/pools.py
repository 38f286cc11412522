"""S13 and S20 of pools: no pool exceeds its limit, and its workers match the log."""

from collections.abc import Mapping
from typing import Any

from windlass.domain.pools.pools import Lifecycle
from windlass.engine.verify.findings import Findings
from windlass.engine.verify.known import SnapshotIndex
from windlass.engine.verify.past import Past


def note_pool(past: Past, found: Findings, data: Mapping[str, Any], seq: int) -> None:
    """Applies an event about a pool or one of its workers."""
    living = past.pools.setdefault(data["pool"], set())
    if "tokens" in data:
        living |= set(data["tokens"])
        if len(living) > data["most"]:
            message = f"pool {data['pool']} has {len(living)} workers, {data['most']} are allowed"
            found.add("S13", message, 0, seq)
    elif data.get("state") == Lifecycle.GONE.name.lower():
        living.discard(data["token"])


def check_pools(known: SnapshotIndex, past: Past, found: Findings) -> None:
    """Checks that the living workers match the log, and that no two rows are the same worker."""
    names = {row.id: row.name for row in known.snapshot.pools}
    living = [row for row in known.snapshot.pool_workers if row.state != Lifecycle.GONE]
    seen: set[int | None] = set()
    for row in living:
        if row.pool not in names:
            found.add("S20", f"worker {row.token} belongs to pool {row.pool}, which does not exist")
        if row.worker in seen:
            found.add("S20", f"two machines of pools are worker {row.worker}")
        seen.add(row.worker)
    if past.trimmed:
        return  # some of them were requested by events that were removed
    logged = {(pool, token) for pool, tokens in past.pools.items() for token in tokens}
    there = {(names.get(row.pool, ""), row.token) for row in living}
    for pool, token in sorted(logged ^ there):
        what = "there" if (pool, token) in there else "gone"
        found.add("S20", f"worker {token} of pool {pool} is {what}, the log says otherwise")

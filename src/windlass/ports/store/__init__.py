"""What the engine asks of a store: set-based row operations, split by role.

A store only reads and writes; every decision is the engine's. All operations of a transaction are
`async` so that one engine drives every store, but those of the memory and SQLite stores never
suspend (see docs/decisions/001). Engine, server and stores import from here; this package imports
only `domain`.

A role has two protocols: `JobsRead` for reads that lock nothing, `JobsWrite` for everything. Locks,
where a store has them, are taken in one order: workers, jobs, places and leases, limits,
workflows, then the log; ascending by id within each. Each method says which rows it locks; the
engine calls them in that order.
"""

from windlass.ports.store.core.leases import Marked
from windlass.ports.store.core.places import Head, Probe
from windlass.ports.store.records.snapshot import Snapshot
from windlass.ports.store.store import Followed, Follower, Marking, News, Store
from windlass.ports.store.transaction import ReadTx, WriteTx

__all__ = [
    "Followed",
    "Follower",
    "Head",
    "Marked",
    "Marking",
    "News",
    "Probe",
    "ReadTx",
    "Snapshot",
    "Store",
    "WriteTx",
]

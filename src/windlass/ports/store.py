"""The names of a store that `api`, `server` and `embedded` import from here.

They are at home in `windlass.store`; what is written anew imports them from there.
"""

from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.store import Marking, Store

__all__ = ["Marking", "ReadTx", "Snapshot", "Store", "WriteTx"]

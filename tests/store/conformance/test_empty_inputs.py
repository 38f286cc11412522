"""Every method that takes several rows takes none as well, and then does nothing."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.store.conformance.driver import Driver
from tests.store.conformance.everything import FILL
from tests.store.conformance.rows import CANCELING, RUNNING
from windlass.store.sql.transaction import WriteTx

NOTHING: list[tuple[str, str, tuple[Any, ...], Any]] = [
    ("jobs", "allocate", (0,), []),
    ("jobs", "insert", ([],), None),
    ("jobs", "read", ([],), {}),
    ("jobs", "lock", ([],), {}),
    ("jobs", "share", ([],), {}),
    ("jobs", "specs", ([],), {}),
    ("jobs", "results", ([],), {}),
    ("jobs", "note_tries", ([],), None),
    ("jobs", "end", ([],), None),
    ("jobs", "record_attempts", ([],), None),
    ("jobs", "attempts", ([],), {}),
    ("jobs", "add_dependents", ({},), None),
    ("jobs", "dependents", ([], 0), {}),
    ("jobs", "claim_keys", ([],), {}),
    ("jobs", "retake_keys", ([], []), {}),
    ("places", "add_ready", ([],), None),
    ("places", "add_waits", ([],), None),
    ("places", "add_due", ([],), None),
    ("places", "add_parked", ([],), None),
    ("places", "meet", ({},), []),
    ("places", "meet", ({}, True), []),
    ("places", "waiting", ([],), {}),
    ("places", "take_waits", ([],), []),
    ("places", "take_due", ([],), []),
    ("places", "take_parked", ([],), []),
    ("places", "take_ready", ([],), []),
    ("places", "peek", ([],), []),
    ("places", "park", ([],), None),
    ("places", "unpark", ([],), None),
    ("pools", "spells", (0, []), []),
    ("steps", "lock_pending", ([],), []),
    ("steps", "of_jobs", ([],), {}),
    ("leases", "grant", ([], RUNNING, 1_000, 10), []),
    ("leases", "lock", ([],), {}),
    ("leases", "of_workers", ([],), []),
    ("leases", "count", ([],), {}),
    ("leases", "marked", ([],), []),
    ("leases", "start", ([],), None),
    ("leases", "mark", ([], CANCELING, "by hand"), None),
    ("leases", "suspect", ([], 1), None),
    ("leases", "touch", ([],), None),
    ("leases", "allow", ([],), None),
    ("leases", "drop", ([],), None),
    ("workers", "lock", ([],), {}),
    ("workers", "read", ([],), {}),
    ("workers", "update", ([],), None),
    ("workers", "beat", ([],), None),
    ("workers", "silent_since", (10**15, []), []),
    ("workflows", "allocate", (0,), []),
    ("workflows", "insert", ([],), None),
    ("workflows", "lock", ([],), {}),
    ("workflows", "bump", ({},), []),
    ("workflows", "set_state", ([],), None),
    ("workflows", "add_cascades", ([],), None),
    ("workflows", "cascades_of", ([], []), []),
    ("limits", "intern", ([],), {}),
    ("limits", "lock", ([],), {}),
    ("limits", "bump", ({},), None),
    ("catalog", "intern_shapes", ({},), {}),
    ("files", "logs", ([],), {}),
    ("files", "add_artifacts", ([],), None),
    ("files", "artifacts", ([],), {}),
    ("files", "lookup", ("team", []), {}),
    ("files", "referenced", ([],), set()),
    ("files", "use_uploads", ("team", [], 1), {}),
    ("files", "trim_uploads", (0, 10), 0),
    ("files", "progress", ([],), {}),
    ("files", "put_dynamic", ([],), None),
    ("files", "dynamic", ([],), {}),
    ("retention", "remove_jobs", ([],), None),
    ("retention", "remove_workflows", ([],), None),
    ("retention", "records", ([],), []),
    ("retention", "baseline", (1, []), []),
    ("retention", "put_baseline", ([],), None),
    ("retention", "drop_baseline", (1, []), None),
    ("schedules", "add_runs", ([],), []),
    ("schedules", "update_runs", ([],), None),
    ("schedules", "trim_runs", (0, 10), 0),
    ("reactions", "add", ([],), None),
    ("reactions", "trim", (0, 10), 0),
    ("statistics", "of_kinds", ([],), []),
    ("statistics", "put", ([],), None),
    ("statistics", "usage", ([],), {}),
    ("series", "put", ([],), None),
    ("deadlines", "add", ([],), None),
    ("deadlines", "drop", ([],), None),
    ("pools", "add_workers", ([],), []),
    ("pools", "update_workers", ([],), None),
    ("pools", "trim_gone", (0, 10), 0),
    ("pools", "charge", ([],), None),
    ("flow", "block", ([], []), None),
    ("flow", "free", ({}, 1_000, 0), ([], [])),
    ("log", "append", ([],), None),
    ("log", "bump", ({},), None),
]


def test_no_rows_are_no_work(store: Driver) -> None:
    """One store for all of them, since each must leave it as it was."""

    async def fill(tx: WriteTx) -> None:
        for step in FILL:
            await step(tx)

    store.transact(fill)
    before = store.snapshot()
    for role, method, arguments, expected in NOTHING:
        told = store.transact(call(role, method, arguments))
        assert told == expected, f"{role}.{method}"
        assert store.snapshot() == before, f"{role}.{method}"
    assert len(store.transact(lambda tx: tx.log.read(0, 10))) == 2


def call(role: str, method: str, arguments: tuple[Any, ...]) -> Callable[[WriteTx], Awaitable[Any]]:
    async def work(tx: WriteTx) -> Any:
        told = await getattr(getattr(tx, role), method)(*arguments)
        return list(told) if method == "allocate" else told

    return work

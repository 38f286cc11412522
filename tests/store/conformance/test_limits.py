"""`Limits`: concurrency keys and how many leases count against each."""

from tests.store.conformance.driver import Driver
from windlass.domain.rows.records import LimitRow
from windlass.store.sql.transaction import WriteTx


def test_new_keys_are_numbered_in_order(store: Driver) -> None:
    rows = [("team", "a", 3), ("team", "b", 1), ("zoo", "a", 2**31)]
    told = store.transact(lambda tx: tx.limits.intern(rows))
    assert told == {("team", "a"): 1, ("team", "b"): 2, ("zoo", "a"): 3}
    assert store.snapshot().limits == (
        LimitRow(1, "team", "a", 3, 0),
        LimitRow(2, "team", "b", 1, 0),
        LimitRow(3, "zoo", "a", 2**31, 0),
    )


def test_a_known_key_keeps_its_id_and_gets_the_new_maximum(store: Driver) -> None:
    store.transact(lambda tx: tx.limits.intern([("team", "a", 3), ("team", "b", 1)]))
    store.transact(lambda tx: tx.limits.bump({1: 2}))
    rows = [("team", "a", 9), ("team", "c", 4)]
    told = store.transact(lambda tx: tx.limits.intern(rows))
    assert told == {("team", "a"): 1, ("team", "c"): 3}
    assert store.snapshot().limits == (
        LimitRow(1, "team", "a", 9, 2),
        LimitRow(2, "team", "b", 1, 0),
        LimitRow(3, "team", "c", 4, 0),
    )


def test_known_keys_use_up_no_numbers(store: Driver) -> None:
    for _ in range(3):
        store.transact(lambda tx: tx.limits.intern([("team", "a", 3)]))
    assert store.transact(lambda tx: tx.limits.intern([("team", "b", 3)])) == {("team", "b"): 2}


def test_locked_limits_are_told_ascending_and_unknown_ones_left_out(store: Driver) -> None:
    rows = [("team", name, number) for number, name in enumerate("abc", start=1)]
    store.transact(lambda tx: tx.limits.intern(rows))
    told = store.transact(lambda tx: tx.limits.lock([3, 9, 1]))
    assert list(told.items()) == [
        (1, LimitRow(1, "team", "a", 1, 0)),
        (3, LimitRow(3, "team", "c", 3, 0)),
    ]


def test_limits_that_nobody_holds_are_locked_without_waiting(store: Driver) -> None:
    store.transact(lambda tx: tx.limits.intern([("team", "a", 1), ("team", "b", 2)]))
    told = store.transact(lambda tx: tx.limits.lock_free([2, 9, 1]))
    assert list(told.items()) == [
        (1, LimitRow(1, "team", "a", 1, 0)),
        (2, LimitRow(2, "team", "b", 2, 0)),
    ]
    assert store.transact(lambda tx: tx.limits.lock_free([])) == {}


def test_a_bump_adds_up(store: Driver) -> None:
    async def bump(tx: WriteTx) -> dict[int, int]:
        await tx.limits.lock([1, 2, 3])
        await tx.limits.bump({3: 5, 1: 1})
        await tx.limits.bump({3: -2, 9: 1})
        return {limit: row.leased for limit, row in (await tx.limits.lock([1, 2, 3])).items()}

    store.transact(lambda tx: tx.limits.intern([("team", name, 7) for name in "abc"]))
    assert store.transact(bump) == {1: 1, 2: 0, 3: 3}


def test_nothing_is_parked_under_a_new_limit(store: Driver) -> None:
    store.transact(lambda tx: tx.limits.intern([("team", "a", 3)]))
    assert store.transact(lambda tx: tx.limits.parked()) == []

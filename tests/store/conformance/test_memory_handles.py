"""What only the memory store has: several engines' handles on one database without a file."""

import apsw
import pytest

from tests.store.conformance.driver import SettableClock
from tests.store.conformance.rows import ticket
from tests.support.running import run
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.sql.transaction import WriteTx
from windlass.store.sqlite.memory import MemoryStore
from windlass.store.store import News


def test_a_store_is_shared_while_several_engines_are_attached() -> None:
    first = MemoryStore(SettableClock())
    assert not first.shared
    second = first.attach("s2")
    assert first.shared
    assert second.shared
    run(second.close())
    assert not first.shared
    assert MemoryStore(SettableClock(), shared=True).shared


def test_a_closed_handle_refuses_and_hears_nothing_while_the_data_stays() -> None:
    first = MemoryStore(SettableClock())
    second = first.attach("s2")
    heard: list[News] = []
    second.subscribe(heard.append)
    run(first.transact(lambda tx: tx.places.add_ready([ticket(1)])))
    run(second.close())
    run(second.close())
    first.announce(News(pokes=(1,)))
    assert heard == []
    with pytest.raises(StoreUnavailable) as refusal:
        run(second.transact(lambda tx: tx.places.heads()))
    assert not refusal.value.outcome_unknown
    run(first.close())
    assert run(first.attach("s3").snapshot()).ready == (ticket(1),)


def test_time_does_not_run_backwards_between_handles() -> None:
    clock = SettableClock()
    first = MemoryStore(clock)
    second = first.attach("s2")

    async def now(tx: WriteTx) -> int:
        return tx.now

    clock.ms = 5_000
    assert run(first.transact(now)) == 5_000
    clock.ms = 4_000
    assert run(second.transact(now)) == 5_000


def test_nothing_is_written_outside_a_transaction() -> None:
    store = MemoryStore(SettableClock())
    kept: list[WriteTx] = []

    async def keep(tx: WriteTx) -> None:
        kept.append(tx)

    run(store.transact(keep))
    with pytest.raises(apsw.ConstraintError):
        run(kept[0].places.add_ready([ticket(1)]))
    assert run(store.snapshot()).ready == ()

"""`store/sqlite/session.py`: a coroutine runs to its end in one step, or is refused."""

from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager

import pytest

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import ticket
from windlass.ports.loop_time import SLICE_S, STEP, give_way, give_way_if_long
from windlass.store.sql.transaction import WriteTx
from windlass.store.sqlite.session import drive


async def three() -> int:
    return 3


class Turn:
    """Something that suspends once, without any event loop."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def test_the_result_comes_back() -> None:
    assert drive(three()) == 3


def test_coroutines_may_await_each_other_as_long_as_none_waits() -> None:
    async def nested() -> int:
        return await three() + await three()

    assert drive(nested()) == 6


def test_an_error_comes_back() -> None:
    async def fail() -> None:
        raise KeyError("k")

    with pytest.raises(KeyError, match="k"):
        drive(fail())


def test_one_that_waits_is_ended_and_refused() -> None:
    ended = []

    @asynccontextmanager
    async def noted() -> AsyncIterator[None]:
        try:
            yield
        finally:
            ended.append(True)

    async def wait() -> None:
        async with noted():
            await Turn()

    kept = wait()
    with pytest.raises(RuntimeError, match=r"^a store transaction tried to wait$"):
        drive(kept)
    assert ended == [True]


def test_one_that_offers_a_turn_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may come between its statements, however long it takes."""
    monkeypatch.setattr(STEP, "taken", lambda: 2 * SLICE_S)

    async def offer() -> int:
        await give_way()
        await give_way_if_long()
        return await three()

    assert drive(offer()) == 3


def test_a_transaction_inside_another_is_refused(store: Driver) -> None:
    if not store.store.inline:
        return

    async def inner(tx: WriteTx) -> None:
        await tx.places.add_ready([ticket(2)])

    async def outer(tx: WriteTx) -> None:
        await tx.places.add_ready([ticket(1)])
        await store.store.transact(inner)

    with pytest.raises(RuntimeError, match="inside another"):
        store.transact(outer)
    assert store.snapshot().ready == ()
    store.transact(inner)
    assert store.snapshot().ready == (ticket(2),)

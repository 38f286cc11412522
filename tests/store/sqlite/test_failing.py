"""When SQLite cannot: busy, a full disk, an invalid row. Nothing is half done."""

from functools import partial
from pathlib import Path

import apsw
import pytest

from tests.store.sqlite.driving import close, open_store, read, transact
from windlass.domain.lifecycle.states import STATE_BY_CODE, TRANSITION_CODES
from windlass.domain.rows.events import Event
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.sql.transaction import WriteTx
from windlass.store.sqlite.store import SqliteStore


def unavailable(store: SqliteStore, code: str) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as caught:
        transact(store, fill_the_disk)
    assert caught.value.code == code
    assert not caught.value.outcome_unknown
    return caught.value


async def fill_the_disk(tx: WriteTx) -> None:
    await tx.jobs.allocate(5)
    await tx.catalog.intern_shapes({"digest": b"x" * 1_000_000})


def test_a_busy_file_is_told_and_may_be_tried_again(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    other = apsw.Connection(str(store.path))
    other.execute("BEGIN IMMEDIATE")
    assert "another connection is writing" in unavailable(store, "store_busy").message
    assert read(store, lambda tx: tx.catalog.meta()) == {}
    other.execute("ROLLBACK")
    assert list(transact(store, lambda tx: tx.jobs.allocate(1))) == [1]
    other.close()
    close(store)


def test_a_full_disk_is_told_and_recovers_by_itself(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    pages = store.writer.pragma("page_count")
    store.writer.pragma("max_page_count", pages + 10)
    assert "is full; free some space" in unavailable(store, "disk_full").message
    assert read(store, lambda tx: tx.catalog.shapes_after(0)) == []
    store.writer.pragma("max_page_count", 1_000_000)
    assert list(transact(store, lambda tx: tx.jobs.allocate(1))) == [1]
    assert transact(store, lambda tx: tx.catalog.intern_shapes({"d": b"{}"})) == {"d": 1}
    close(store)


def test_an_error_on_the_way_to_the_disk_leaves_the_outcome_open(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    failing = apsw.IOError("disk I/O error")
    store.writer.set_commit_hook(lambda: (_ for _ in ()).throw(failing))
    with pytest.raises(StoreUnavailable) as caught:
        transact(store, lambda tx: tx.catalog.set_meta("epoch", 1))
    assert caught.value.outcome_unknown
    store.writer.set_commit_hook(None)
    assert transact(store, lambda tx: tx.catalog.meta()) == {}
    close(store)


def test_numbers_of_a_transaction_that_failed_are_given_again(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")

    async def fail(tx: WriteTx) -> None:
        await tx.jobs.allocate(5)
        raise KeyError("wrong")

    with pytest.raises(KeyError):
        transact(store, fail)
    assert list(transact(store, lambda tx: tx.jobs.allocate(2))) == [1, 2]
    close(store)
    again = open_store(store.path)
    assert list(transact(again, lambda tx: tx.jobs.allocate(2))) == [3, 4]
    close(again)


def test_the_database_refuses_every_invalid_transition(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    codes = range(len(STATE_BY_CODE))
    accepted = set()
    for pair in [(source, to) for source in codes for to in codes]:
        try:
            transact(store, partial(append_transition, pair))
        except apsw.ConstraintError:
            continue
        accepted.add(pair)
    assert accepted == TRANSITION_CODES
    close(store)


async def append_transition(pair: tuple[int, int], tx: WriteTx) -> None:
    await tx.log.append([Event(0, 1, 1, 1, 1, 1, 1, *pair, None, None, None)])


def test_the_newest_event_cannot_be_deleted(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    event = Event(0, 1, 2, 0, 0, 1, 1, 0, 0, "seen", None, None)
    transact(store, lambda tx: tx.log.append([event] * 3))
    store.writer.execute("DELETE FROM events WHERE seq < 3")
    with pytest.raises(apsw.ConstraintError, match="the newest event must stay"):
        store.writer.execute("DELETE FROM events")
    transact(store, lambda tx: tx.log.append([event]))
    assert [row.seq for row in read(store, lambda tx: tx.log.read(0, 10))] == [3, 4]
    close(store)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    close(store)
    close(store)
    with pytest.raises(StoreUnavailable, match="was closed"):
        transact(store, lambda tx: tx.catalog.meta())

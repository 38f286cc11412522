"""The WAL is used again from its beginning, unless somebody still reads from it."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.store.sqlite.driving import close, open_store, read, transact
from windlass.domain.rows.events import Event
from windlass.store.sql.transaction import ReadTx
from windlass.store.sqlite import connection
from windlass.store.sqlite.connection import open_reader
from windlass.store.sqlite.store import SqliteStore


def write_a_megabyte(store: SqliteStore) -> None:
    event = Event(0, 1, 2, 0, 0, 1, 1, 0, 0, "x" * 1_000, None, None)
    transact(store, lambda tx: tx.log.append([event] * 1_000))


def wal_size(store: SqliteStore) -> int:
    return store.path.with_name(store.path.name + "-wal").stat().st_size


@pytest.fixture
def small_wal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAGES", 100)


@pytest.mark.usefixtures("small_wal")
def test_the_wal_does_not_grow_with_what_is_written(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    write_a_megabyte(store)
    size = wal_size(store)
    for _ in range(5):
        write_a_megabyte(store)
    assert wal_size(store) < size * 1.5
    close(store)


@pytest.mark.usefixtures("small_wal")
def test_a_reader_keeps_its_snapshot_and_the_wal_recovers_after_it(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    write_a_megabyte(store)
    reader = open_reader(store.path)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM events").fetchall() == [(1_000,)]
    for _ in range(3):
        write_a_megabyte(store)
    assert not store.checkpoint()
    assert reader.execute("SELECT count(*) FROM events").fetchall() == [(1_000,)]
    reader.execute("COMMIT")
    assert store.checkpoint()
    size = wal_size(store)
    write_a_megabyte(store)
    assert wal_size(store) == size
    reader.close()
    close(store)


@pytest.mark.usefixtures("small_wal")
def test_while_a_reader_holds_the_wal_it_is_not_tried_after_every_commit(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    reader = open_reader(store.path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchall()
    write_a_megabyte(store)
    assert not store._checkpoints.is_wanted()
    transact(store, lambda tx: tx.catalog.set_meta("epoch", 1))
    assert not store._checkpoints.is_wanted()
    reader.close()
    close(store)


def test_reads_see_what_was_committed_before_them(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")

    async def count(tx: ReadTx) -> int:
        return len(await tx.log.read(0, 10_000))

    assert read(store, count) == 0
    write_a_megabyte(store)
    assert read(store, count) == 1_000
    close(store)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes: writing there is an I/O error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_commit_stands_even_if_no_page_can_be_moved(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    write_a_megabyte(store)
    with largest_file(store.path.stat().st_size):
        assert not store.checkpoint()
    assert store.checkpoint()
    close(store)

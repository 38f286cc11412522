"""A backup, or an older copy of the file, is recognized when it is opened in its place."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from tests.store.sqlite.driving import StandingClock, close, open_store, transact
from windlass.domain.rows.events import Event
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.sqlite import connection
from windlass.store.sqlite.backup import back_up
from windlass.store.sqlite.file_lock import EMBEDDED, holding
from windlass.store.sqlite.store import SqliteStore

EVENT = Event(0, 1, 2, 0, 0, 1, 1, 0, 0, "seen", None, None)


def write(path: Path, events: int = 1) -> None:
    store = open_store(path)
    transact(store, lambda tx: tx.log.append([EVENT] * events))
    close(store)


def refused(path: Path, exclusive: bool = True) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        open_store(path, exclusive=exclusive)
    assert caught.value.code == "store_restored"
    assert f"run `windlass db restored --store sqlite://{path}`" in caught.value.message
    return caught.value.message


def accept(path: Path) -> None:
    """Opens a file as `db restored` does, and as it leaves it."""
    store = open_store(path, restored=True)
    store.note_newest()
    transact(store, lambda tx: tx.catalog.set_meta("is_backup", 0))
    close(store)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "windlass.db"
    write(file, 3)
    return file


def test_a_backup_is_recognized_wherever_it_is_put(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    back_up(path, other)
    assert "is a backup" in refused(other)
    assert "is a backup" in refused(other, exclusive=False)
    accept(other)
    close(open_store(other))
    close(open_store(path))  # The original is none.


@pytest.mark.parametrize("exclusive", [True, False], ids=["server", "guest"])
def test_an_older_copy_is_recognized(path: Path, tmp_path: Path, exclusive: bool) -> None:
    older = shutil.copy(path, tmp_path / "older.db")
    write(path)
    shutil.copy(older, path)
    assert "its newest event is 3, but event 4 was written here" in refused(path, exclusive)
    accept(path)
    close(open_store(path, exclusive=exclusive))


def test_looking_at_an_older_copy_does_not_accept_it(path: Path, tmp_path: Path) -> None:
    older = shutil.copy(path, tmp_path / "older.db")
    write(path)
    shutil.copy(older, path)
    close(open_store(path, restored=True))
    refused(path)


def test_a_file_that_was_emptied_is_recognized(path: Path) -> None:
    os.truncate(path, 0)
    refused(path)


@pytest.mark.parametrize("exclusive", [True, False], ids=["server", "guest"])
def test_without_the_file_everything_begins_anew(path: Path, exclusive: bool) -> None:
    path.unlink()
    close(open_store(path, exclusive=exclusive))
    close(open_store(path))


def test_how_far_the_file_has_come_is_noted_while_it_is_used(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PAGES", 10)
    store = open_store(path)
    assert holding(path).newest == 3
    event = EVENT._replace(reason="x" * 1_000)
    transact(store, lambda tx: tx.log.append([event] * 100))
    assert holding(path).newest == 103
    close(store)


def test_a_guest_that_takes_the_file_over_notes_it_too(path: Path) -> None:
    async def work() -> None:
        guest = SqliteStore.open(path, StandingClock(), exclusive=False)
        await guest.transact(lambda tx: tx.log.append([EVENT]))
        assert await guest.lead(EMBEDDED, "file:///blobs")
        assert holding(path)[1:] == (EMBEDDED, "file:///blobs", 4)
        await guest.close()

    asyncio.run(work())

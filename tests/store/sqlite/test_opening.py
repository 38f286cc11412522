"""What happens when a file is opened: who may, how it is kept, and when it is refused."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from tests.store.sqlite.driving import START_MS, close, open_store, read, transact
from windlass.domain.rows.events import Event
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.sql.transaction import WriteTx
from windlass.store.sqlite.connection import open_writer


def refused(path: Path) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as caught:
        open_store(path)
    assert not caught.value.outcome_unknown
    return caught.value


def test_a_second_server_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    first = open_store(path)
    error = refused(path)
    assert error.code == "store_locked"
    assert f"{path} is in use" in error.message
    assert f"process {os.getpid()} (" in error.message
    assert Path(sys.orig_argv[0]).name in error.message  # what the holder runs
    close(first)
    close(open_store(path))


def test_a_server_in_another_process_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    first = open_store(path)
    program = (
        "from tests.store.sqlite.test_opening import *\n"
        "import sys\n"
        "print(refused(Path(sys.argv[1])).code)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "store_locked\n"
    close(first)


def test_two_stores_may_share_a_file_if_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    first, second = open_store(path, exclusive=False), open_store(path, exclusive=False)
    transact(first, lambda tx: tx.catalog.set_meta("epoch", 3))
    assert read(second, lambda tx: tx.catalog.meta()) == {"epoch": 3}
    close(first)
    close(second)


def test_a_new_file_that_another_program_is_setting_up_is_waited_for(tmp_path: Path) -> None:
    """The switch to WAL does not wait for a lock by itself, whatever the patience."""
    path = tmp_path / "windlass.db"
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    said: list[str] = []

    def trace(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        if said and "journal_mode" in said[-1].lower() and not other.get_autocommit():
            other.execute("ROLLBACK")  # The first try has failed.
        said.append(sql)
        return True

    def watch(connection: apsw.Connection) -> None:
        connection.set_exec_trace(trace)

    apsw.connection_hooks.append(watch)
    try:
        connection = open_writer(path, 5_000)
    finally:
        apsw.connection_hooks.remove(watch)
    assert connection.pragma("journal_mode") == "wal"
    assert other.get_autocommit()
    connection.close()
    other.close()


def test_all_files_belong_to_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    store = open_store(path)
    transact(store, lambda tx: tx.catalog.set_meta("epoch", 1))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    names = ("windlass.db", "windlass.db-wal", "windlass.db-shm", "windlass.db.lock")
    assert modes == dict.fromkeys(names, 0o600)
    close(store)


def test_a_file_with_a_wider_mode_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    path.touch(0o644)
    close(open_store(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_settings_that_durability_rests_on(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")
    pragmas = ("journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint")
    assert [store.writer.pragma(name) for name in pragmas] == ["wal", 2, 0, 0]
    assert store.reader.pragma("query_only") in (0, 1)
    with pytest.raises(apsw.ReadOnlyError):
        store.reader.execute("DELETE FROM jobs")
    close(store)


def test_a_file_that_is_no_database_is_refused_with_the_way_back(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    path.write_bytes(b"this is not a database at all, but long enough to look at" * 100)
    error = refused(path)
    assert error.code == "store_corrupt"
    assert "restore the newest backup" in error.message
    assert ".recover" in error.message


def test_a_damaged_file_is_refused_with_the_way_back(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    store = open_store(path)
    transact(store, lambda tx: tx.log.append([event(at=1)] * 1_000))
    close(store)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff" * 8_192)
    assert refused(path).code == "store_corrupt"


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    store = open_store(path)
    transact(store, lambda tx: tx.log.append([event(at=1)] * 1_000))
    close(store)
    os.truncate(path, path.stat().st_size // 2)
    assert refused(path).code == "store_corrupt"


def test_somebody_elses_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with apsw.Connection(str(path)) as connection:
        connection.execute("CREATE TABLE invoices (id INTEGER)")
    assert refused(path).code == "store_foreign"


def test_a_refused_file_stays_free_for_others(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    path.write_bytes(b"x" * 5_000)
    refused(path)
    path.unlink()
    close(open_store(path))


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        open_store(tmp_path / "nowhere" / "windlass.db")


def test_time_goes_on_from_the_newest_event(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    store = open_store(path)
    transact(store, lambda tx: tx.log.append([event(at=START_MS + 5_000)]))
    close(store)
    behind = open_store(path, ms=START_MS)
    assert transact(behind, tell_now) == START_MS + 5_000
    close(behind)


async def tell_now(tx: WriteTx) -> int:
    return tx.now


def event(at: int) -> Event:
    return Event(0, at, 2, 0, 0, 1, 1, 0, 0, "seen", None, None)

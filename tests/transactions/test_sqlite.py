"""SQLite: the application's file is the queue's file, and another process runs the jobs."""

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import aiosqlite
import apsw
import pytest
import sqlalchemy

import windlass
from tests.support.running import run
from tests.support.waiting import until
from tests.transactions.functions import add
from windlass.domain.values.errors import Conflict, InvalidInput

ROOT = Path(__file__).resolve().parents[2]
INSERT = "INSERT INTO orders VALUES ('{}')"
RESULT = "SELECT CAST(result AS TEXT) FROM outcomes WHERE job = ?"

# Holds the file and runs its jobs until its input ends.
HOLDER = """
import sys, windlass

if __name__ == "__main__":
    with windlass.Client.embedded(sys.argv[1], workers=1):
        print("ready", flush=True)
        sys.stdin.read()
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("shop") / "shop.db"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        connection = sqlite3.connect(path, timeout=30)
        connection.execute("CREATE TABLE orders (name TEXT PRIMARY KEY)")
        connection.close()
        yield path
        holder.communicate(timeout=30)


def with_sqlite3(path: Path, name: str, commit: bool) -> int:
    connection = sqlite3.connect(path, timeout=30)
    connection.row_factory = sqlite3.Row
    connection.execute(INSERT.format(name))
    job = add.submit_in(connection, 1, b=2)
    if commit:
        connection.commit()
    connection.close()
    return job.id


def with_sqlalchemy(path: Path, name: str, commit: bool) -> int:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", connect_args={"timeout": 30})
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(INSERT.format(name)))
        job = windlass.submit_in(connection, add, 1, b=2)
        if commit:
            connection.commit()
    engine.dispose()
    return job.id


def with_aiosqlite(path: Path, name: str, commit: bool) -> int:
    async def go() -> int:
        async with aiosqlite.connect(path, timeout=30) as connection:
            await connection.execute(INSERT.format(name))
            job = await add.submit_in_async(connection, 1, b=2)
            if commit:
                await connection.commit()
        return job.id

    return asyncio.run(go())


def with_apsw(path: Path, name: str, commit: bool) -> int:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(30_000)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(INSERT.format(name))
    job = add.submit_in(connection, 1, b=2)
    connection.execute("COMMIT" if commit else "ROLLBACK")
    connection.close()
    return job.id


Way = Callable[[Path, str, bool], int]
WAYS: list[Way] = [with_sqlite3, with_sqlalchemy, with_aiosqlite, with_apsw]


def result_of(path: Path, job: int) -> str | None:
    connection = sqlite3.connect(path, timeout=30)
    row = connection.execute(RESULT, [job]).fetchone()
    connection.close()
    return None if row is None else row[0]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_job_runs_if_and_only_if_its_transaction_commits(file: Path, way: Way) -> None:
    gone = way(file, f"undone {way.__name__}", False)
    kept = way(file, f"kept {way.__name__}", True)

    async def ended() -> bool:
        return result_of(file, kept) is not None

    run(until("the job has ended", ended, 60))
    assert result_of(file, kept) == "3"
    # The number was given up with the transaction: the next one took it.
    assert kept == gone


def test_others_that_write_meanwhile_do_not_lock_a_transaction_out(file: Path) -> None:
    other = apsw.Connection(str(file))  # without a timeout: refused while the file is locked
    written: list[str] = []

    def write_between(_cursor: apsw.Cursor, statement: str, _values: object) -> bool:
        with contextlib.suppress(apsw.BusyError):
            other.execute(INSERT.format(f"between {len(written)}"))
            written.append(statement)
        return True

    mine = apsw.Connection(str(file))
    mine.set_busy_timeout(30_000)
    with mine:  # a transaction that is not IMMEDIATE
        mine.exec_trace = write_between
        job = add.submit_in(mine, 1, b=2)
        mine.exec_trace = None
        mine.execute(INSERT.format("of the transaction"))
    assert job.id > 0
    assert written, "the other connection never wrote: the test shows nothing"


def test_a_transaction_that_read_too_early_says_how_to_begin_it(file: Path) -> None:
    other = apsw.Connection(str(file))
    other.set_busy_timeout(30_000)
    mine = apsw.Connection(str(file))
    with mine:
        mine.execute("SELECT count(*) FROM orders").fetchall()
        other.execute(INSERT.format("meanwhile"))
        with pytest.raises(apsw.BusyError) as refused:
            add.submit_in(mine, 1, b=2)
    assert "BEGIN IMMEDIATE" in "".join(refused.value.__notes__)


def test_a_transaction_that_read_while_another_one_writes_says_so_too(file: Path) -> None:
    other, mine = apsw.Connection(str(file)), apsw.Connection(str(file))
    other.set_busy_timeout(30_000)
    mine.set_busy_timeout(30_000)
    with mine:
        mine.execute("SELECT count(*) FROM orders").fetchall()
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(apsw.BusyError) as refused:
            add.submit_in(mine, 1, b=2)
        other.execute("ROLLBACK")
    assert "BEGIN IMMEDIATE" in "".join(refused.value.__notes__)


def test_what_the_file_does_not_know_is_refused_in_the_transaction(file: Path) -> None:
    connection = sqlite3.connect(file, timeout=30)
    with pytest.raises(InvalidInput, match="the id of an existing job"):
        add.options(after=[987_654]).submit_in(connection, 1, 2)
    connection.close()


def test_a_file_that_is_no_store_says_what_to_do(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    with pytest.raises(Conflict, match="not a Windlass store"):
        add.submit_in(connection, 1, 2)
    connection.close()


def test_two_sqlite_libraries_in_one_process_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    with windlass.Client.embedded(path, workers=0):
        connection = sqlite3.connect(path, timeout=30)
        with pytest.raises(Conflict, match="could damage the file"):
            add.submit_in(connection, 1, 2)
        connection.close()
    connection = sqlite3.connect(path, timeout=30)
    assert add.submit_in(connection, 1, 2).id == 1
    connection.close()


def test_a_key_with_another_body_is_refused_inside_the_transaction(file: Path) -> None:
    connection = sqlite3.connect(file, timeout=30)
    later = add.options(key="held", delay="1h")
    job = later.submit_in(connection, 1, 2)
    connection.commit()
    moved = "SELECT 1 FROM jobs WHERE id = ?"

    async def is_moved() -> bool:
        return connection.execute(moved, [job.id]).fetchone() is not None

    run(until("a server has moved the job", is_moved, 60))
    assert later.submit_in(connection, 1, 2).id > job.id
    used = f"'held' is used by job {job.id}, which was submitted with other arguments"
    with pytest.raises(Conflict, match=used):
        later.submit_in(connection, 1, 3)
    connection.rollback()
    connection.close()

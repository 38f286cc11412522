"""The benchmark of the core runs, and its bare loops write the rows that the engine writes."""

from pathlib import Path

from benchmarks.core import SECTIONS
from benchmarks.sections import postgres, sqlite, wal
from tests.support.postgres import PostgresServer
from tests.support.running import run

JOBS = 20


def test_bare_sqlite_writes_the_rows_of_the_engine(tmp_path: Path) -> None:
    sqlite.expect_same_rows(tmp_path)
    assert "sqlite" in SECTIONS


def test_bare_postgresql_writes_the_rows_of_the_engine(postgres_server: PostgresServer) -> None:
    postgres.expect_same_rows(postgres_server)


def test_bytes_in_the_log_of_postgresql_are_counted_by_table(
    postgres_server: PostgresServer,
) -> None:
    whole, *tables = run(wal.measure(postgres_server, JOBS, JOBS))
    written = {row.name: row.value for row in tables}
    assert 0 < written["… events"] < written["… leases"]  # they share rows
    assert sum(written.values()) <= whole.value

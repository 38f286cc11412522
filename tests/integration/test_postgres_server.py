"""The PostgreSQL of the tests itself: fresh databases, durable by default, never left behind."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg

from tests.support.postgres import PostgresServer, start_postgres
from tests.support.running import run

ROOT = Path(__file__).resolve().parents[2]
END_SECONDS = 120

# Starts a server, says where its data is, and waits to be killed.
ORPHAN = """
import asyncio, asyncpg, sys
from tests.support.postgres import start_postgres

async def folder(dsn):
    connection = await asyncpg.connect(dsn)
    print(await connection.fetchval("SHOW data_directory"), flush=True)
    await connection.close()

asyncio.run(folder(start_postgres(durable=False).dsn()))
sys.stdin.read()
"""


async def ask(dsn: str, query: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def test_it_is_postgresql_18(postgres_dsn: str) -> None:
    version = run(ask(postgres_dsn, "SHOW server_version"))
    assert str(version).startswith("18.")


def test_each_database_is_new_and_empty(postgres_server: PostgresServer) -> None:
    first, second = postgres_server.create_database(), postgres_server.create_database()
    run(ask(first, "CREATE TABLE t (x int)"))
    assert run(ask(first, "SELECT to_regclass('t')::text")) == "t"
    assert run(ask(second, "SELECT to_regclass('t')::text")) is None
    for dsn in (first, second):
        postgres_server.drop_database(dsn)


def test_it_is_durable_by_default_and_leaves_nothing() -> None:
    server = start_postgres()
    try:
        assert run(ask(server.dsn(), "SHOW fsync")) == "on"
        assert run(ask(server.dsn(), "SHOW synchronous_commit")) == "on"
        data = Path(str(run(ask(server.dsn(), "SHOW data_directory"))))
        assert data.exists()
    finally:
        server.stop()
    assert not data.parent.exists()
    server.stop()


def test_it_goes_away_when_its_owner_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        data = Path(owner.stdout.readline().strip())
        keeper = os.pidfd_open(keeper_of(data))
        owner.send_signal(signal.SIGKILL)
    ended, _, _ = select.select([keeper], [], [], END_SECONDS)
    os.close(keeper)
    assert ended
    assert not data.parent.exists()


def keeper_of(data: Path) -> int:
    """The process that started the server on `data`."""
    server = (data / "postmaster.pid").read_text().splitlines()[0]
    status = Path(f"/proc/{server}/status").read_text()
    return int(status.partition("PPid:")[2].split()[0])

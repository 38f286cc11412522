"""What `windlass doctor --store` says about a real PostgreSQL."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.cli.program import Program
from tests.store.postgres.conftest import OpenStore
from tests.support.debian import missing_reason
from tests.support.pgbouncer import PgBouncer, start_pgbouncer
from tests.support.postgres import USER, PostgresServer
from tests.support.running import run
from windlass.assembly.stores import upgrade_store
from windlass.domain.values.errors import StoreUnavailable
from windlass.store.postgres.condition import (
    MAX_DEAD,
    MAX_LAG,
    Found,
    examine,
    judge_autovacuum,
    judge_connections,
    judge_replication,
)


def about(found: list[Found], check: str) -> tuple[str, str]:
    """What was found by one check."""
    (one,) = [(state, detail) for name, state, detail in found if name == check]
    return one


def test_a_server_of_the_tests_may_lose_commits(open_store: OpenStore, postgres_dsn: str) -> None:
    async def check() -> list[Found]:
        async with open_store():
            return await examine(postgres_dsn, pool_open=25)

    found = run(check())
    state, detail = about(found, "postgresql commits")
    assert state == "problem"
    assert detail.startswith("fsync, full_page_writes: off")
    assert about(found, "postgresql")[0] == "ok"
    assert about(found, "postgresql pooler") == ("ok", "none: servers connect directly")
    assert about(found, "postgresql autovacuum")[0] == "ok"
    assert about(found, "postgresql replication")[0] == "note"
    assert " ms from this machine" in about(found, "postgresql round trip")[1]


def test_each_server_listens_on_one_connection(open_store: OpenStore, postgres_dsn: str) -> None:
    async def check() -> list[Found]:
        async with open_store("s1"), open_store("s2"):
            return await examine(postgres_dsn, pool_open=1_000_000)

    state, detail = about(run(check()), "postgresql connections")
    assert state == "problem"
    assert "servers may take 1000001 each: raise max_connections by" in detail


def test_a_pooler_is_found_with_and_without_a_way_past_it(
    pgbouncer: PgBouncer, postgres_dsn: str, postgres_server: PostgresServer
) -> None:
    async def check() -> None:
        name = "postgresql pooler"
        alone, past = pgbouncer.dsn(postgres_dsn), pgbouncer.dsn(postgres_dsn, listen=True)
        await upgrade_store(postgres_dsn)
        state, detail = about(await examine(alone, 25), name)
        assert state == "note"
        assert "add ?direct=HOST:PORT" in detail
        assert about(await examine(past, 25), name)[0] == "ok"
        to_itself = f"{alone}?direct=localhost:{urlsplit(alone).port}"
        assert "leads to a pooler" in about(await examine(to_itself, 25), name)[1]
        nowhere = f"{alone}?direct=127.0.0.1:1"
        assert about(await examine(nowhere, 25), name)[0] == "problem"

    run(check())


def test_another_database_behind_the_pooler_is_a_problem(
    postgres_server: PostgresServer, postgres_dsn: str, tmp_path: Path
) -> None:
    if reason := missing_reason("pgbouncer"):
        pytest.skip(reason)
    astray = postgres_server.create_database()
    name = urlsplit(astray).path[1:]
    target = f"host=127.0.0.1 port={postgres_server.port} user={USER}"
    led = f"[databases]\n{name} = {target} dbname={urlsplit(postgres_dsn).path[1:]}"
    pooler = start_pgbouncer(postgres_server.port, tmp_path, led)

    async def check() -> None:
        await upgrade_store(postgres_dsn)
        await upgrade_store(astray)
        found = await examine(pooler.dsn(astray, listen=True), 25)
        state, detail = about(found, "postgresql pooler")
        assert state == "problem"
        assert "is another database" in detail

    try:
        run(check())
    finally:
        pooler.stop()
        postgres_server.drop_database(astray)


def test_an_old_transaction_is_named(postgres_dsn: str) -> None:
    async def check() -> None:
        from windlass.store.postgres import condition

        connection = await asyncpg.connect(postgres_dsn)
        await connection.execute("BEGIN")
        try:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(condition, "LONG_S", 0)
                found = await examine(postgres_dsn, 25)
        finally:
            await connection.close()
        state, detail = about(found, "postgresql transactions")
        assert state == "note"
        assert "nothing deleted since is removed" in detail

    run(check())


def test_a_database_that_does_not_answer_is_no_finding(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreUnavailable, match="does not exist"):
        run(examine(postgres_server.dsn("nowhere"), 25))


def test_connections_are_compared_with_what_servers_may_take() -> None:
    fits = judge_connections(30, 12, 2, places=97, pool_open=25)
    assert fits[1:] == ("ok", "30 of 97 used, 12 by Windlass; 2 servers may take 26 each")
    _, state, detail = judge_connections(30, 12, 4, places=97, pool_open=25)
    assert state == "problem"
    assert detail.endswith("may take 26 each: raise max_connections by 25, or lower pool_open")
    assert "3 servers of 26 fit in" in judge_connections(10, 0, 0, places=97, pool_open=25)[2]


def test_a_database_that_is_not_vacuumed_is_told() -> None:
    assert judge_autovacuum(False, [])[1] == "problem"
    assert judge_autovacuum(True, [])[1] == "ok"
    assert judge_autovacuum(True, [("jobs", MAX_DEAD, 0, True)])[1] == "ok"
    lagging = judge_autovacuum(True, [("jobs", MAX_DEAD + 1, 5, False)])
    assert lagging[1:] == (
        "note", "table jobs has 1,000,001 dead rows beside 5: vacuum does not keep up"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("standbys", "waits", "state", "said"),
    [
        ([], False, "note", "no standby follows"),
        ([], True, "problem", "commits wait"),
        ([("db2", "async", 0)], False, "note", "may lose commits: db2 (async, 0 B behind)"),
        ([("db2", "sync", 0)], True, "ok", "db2 (sync, 0 B behind)"),
        ([("db2", "sync", MAX_LAG + 1)], True, "note", "a standby lags"),
    ],
)
def test_a_failover_that_can_lose_commits_is_told(
    standbys: list[tuple[str, str, int]], waits: bool, state: str, said: str
) -> None:
    found = judge_replication(standbys, waits)
    assert found[1] == state
    assert said in found[2]


def test_doctor_prints_what_it_finds_and_exits_with_1(postgres_dsn: str, tmp_path: Path) -> None:
    done = Program(tmp_path)("doctor", "--json", "--store", postgres_dsn)
    found = {one["check"]: one["state"] for one in json.loads(done.stdout)}
    assert found["postgresql"] == "ok"
    assert found["postgresql commits"] == "problem"
    assert done.returncode == 1


def test_doctor_takes_postgresql_alone(tmp_path: Path) -> None:
    done = Program(tmp_path)("doctor", "--store", "sqlite:////srv/windlass.db")
    assert "expected --store to be postgresql://…" in done.stderr
    assert done.returncode == 2

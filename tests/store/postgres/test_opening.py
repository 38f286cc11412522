"""Opening a database that accepts no connection yet, or was restored from a dump."""

import asyncio
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from tests.support.postgres import USER, PostgresServer
from tests.support.running import run
from tests.support.waiting import until
from windlass.assembly.backend import ServerOptions, running_backend
from windlass.assembly.stores import begin_epoch_of, upgrade_store, verify_store
from windlass.domain.config import Config
from windlass.domain.values.errors import Conflict, StoreUnavailable


class Role:
    """A role that owns the database, and how many connections it may have."""

    def __init__(self, server: PostgresServer, dsn: str) -> None:
        self._server = server
        self._database = dsn
        self.name = dsn.rpartition("/")[2]
        self.dsn = dsn.replace(f"//{USER}@", f"//{self.name}@")
        server.execute(f"CREATE ROLE {self.name} LOGIN")
        server.execute(f"ALTER DATABASE {self.name} OWNER TO {self.name}")

    def limit(self, connections: int) -> None:
        self._server.execute(f"ALTER ROLE {self.name} CONNECTION LIMIT {connections}")

    def drop(self) -> None:
        self._server.drop_database(self._database)
        self._server.execute(f"DROP ROLE {self.name}")


@pytest.fixture
def role(postgres_server: PostgresServer, postgres_dsn: str) -> Iterator[Role]:
    role = Role(postgres_server, postgres_dsn)
    run(upgrade_store(role.dsn))
    yield role
    role.drop()


async def start(dsn: str, wait_ms: int = 30_000, stopped: bool = False) -> None:
    """Starts what servers and workers start first, and stops it again."""
    options = ServerOptions(dsn, "memory:", Config(store_wait_ms=wait_ms), stopped=lambda: stopped)
    async with running_backend(options):
        pass


def test_a_server_that_finds_no_connection_waits_for_one_and_says_so(role: Role) -> None:
    async def work() -> None:
        role.limit(0)
        with capture_logs() as logs:
            starting = asyncio.create_task(start(role.dsn))

            async def is_said() -> bool:
                return any(line["event"] == "waiting_for_store" for line in logs)

            await until("it says that it waits", is_said, 60)
            role.limit(-1)
            await starting
        assert "too many connections" in logs[0]["error"]

    run(work())


def test_it_does_not_wait_for_ever(role: Role) -> None:
    role.limit(0)
    with pytest.raises(StoreUnavailable, match=r"too many connections .*gave up after 0.01 s"):
        run(start(role.dsn, wait_ms=10))
    with pytest.raises(StoreUnavailable, match=r"too many connections for role \"\w+\"$"):
        run(start(role.dsn, wait_ms=0))


def test_it_does_not_wait_once_it_is_told_to_stop(role: Role) -> None:
    role.limit(0)
    with pytest.raises(StoreUnavailable, match="stopped"):
        run(start(role.dsn, stopped=True))


def test_it_does_not_wait_for_a_database_that_does_not_exist(
    postgres_server: PostgresServer,
) -> None:
    with pytest.raises(StoreUnavailable, match="does not exist") as refused:
        run(start(postgres_server.dsn("nowhere")))
    assert refused.value.code == "store_refused"


def test_a_restored_dump_is_recognized_until_an_epoch_begins(
    postgres_server: PostgresServer, role: Role
) -> None:
    run(start(role.dsn))
    run(start(role.dsn))
    postgres_server.execute(f"ALTER DATABASE {role.name} RENAME TO {role.name}_old")
    postgres_server.execute(
        f"CREATE DATABASE {role.name} TEMPLATE {role.name}_old OWNER {role.name}"
    )
    postgres_server.execute(f"DROP DATABASE {role.name}_old")
    address = role.dsn.replace("@", ":secret@")
    with pytest.raises(Conflict) as refused:
        run(start(address))
    assert refused.value.code == "store_restored"
    assert f"`windlass db restored --store {role.dsn}`" in refused.value.message
    assert run(verify_store(role.dsn, Config())).violations == []
    with pytest.raises(Conflict):
        run(start(role.dsn))
    assert run(begin_epoch_of(role.dsn, Config(), own_settings=False)).epoch == 1
    run(start(role.dsn))

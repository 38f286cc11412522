"""One queue on PostgreSQL with a worker, for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import windlass
from tests.support.postgres import PostgresServer
from tests.support.running import run
from windlass.domain.values.errors import NotFound
from windlass.store.postgres.store import PostgresStore


class Queue(NamedTuple):
    """The database of queue and application, and a client."""

    dsn: str
    client: windlass.Client

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Returns the rows of a query, in a transaction of its own."""
        with psycopg.connect(self.dsn) as connection:
            return connection.execute(query, values).fetchall()

    def job_exists(self, job: int) -> bool:
        """Returns whether a server would show this job, also one that it has to move first."""
        try:
            self.client.job(job).info()
        except NotFound:
            return False
        return True

    def orders(self) -> set[str]:
        return {row[0] for row in self.ask("SELECT name FROM orders")}


async def upgrade(dsn: str) -> None:
    store = await PostgresStore.connect(dsn)
    try:
        await store.upgrade()
    finally:
        await store.close()


@pytest.fixture(scope="package")
def queue(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Queue]:
    dsn = postgres_server.create_database()
    run(upgrade(dsn))
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE orders (name text PRIMARY KEY)")
    blobs: Path = tmp_path_factory.mktemp("blobs")
    with windlass.Client.embedded(dsn, blobs=f"file://{blobs}", workers=2) as client:
        yield Queue(dsn, client)
    postgres_server.drop_database(dsn)

"""An upgraded PostgreSQL store for each test, on a database of its own."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from windlass.store.postgres.store import PostgresStore

OpenStore = Callable[..., AbstractAsyncContextManager[PostgresStore]]


@pytest.fixture
def open_store(postgres_dsn: str) -> OpenStore:
    """Open a store on this test's database; `dsn` leads another way to it."""

    @asynccontextmanager
    async def opened(
        server: str = "s1", dsn: str = postgres_dsn, **options: Any
    ) -> AsyncIterator[PostgresStore]:
        store = await PostgresStore.connect(dsn, server, **options)
        try:
            await store.upgrade()
            await store.check_schema()
            yield store
        finally:
            await store.close()

    return opened

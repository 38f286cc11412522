"""Brings a PostgreSQL database back to what it was right after its migrations."""

import asyncio

import asyncpg

from tests.support.saved_tables import RESTORE, SAVE, KeptConnection, install


class PristineDatabase:
    """Remembers what the database holds when it is made."""

    def __init__(self, dsn: str) -> None:
        asyncio.run(_install(dsn))
        self._connection = KeptConnection(dsn)
        self._connection.execute(SAVE)
        self.dsn = dsn

    def restore(self) -> None:
        """Brings back what it held."""
        self._connection.execute(RESTORE)

    def close(self) -> None:
        self._connection.close()


async def _install(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await install(connection)
    finally:
        await connection.close()

"""Brings a PostgreSQL database back to what it was right after its migrations."""

import asyncio

import asyncpg

from tests.support import saved_tables


def save(dsn: str) -> None:
    """Remember what the database holds now."""
    asyncio.run(_save(dsn))


def restore(dsn: str) -> None:
    """Bring back what the database held when it was saved."""
    asyncio.run(_restore(dsn))


async def _save(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await saved_tables.install(connection)
        await connection.execute(saved_tables.SAVE)
    finally:
        await connection.close()


async def _restore(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(saved_tables.RESTORE)
    finally:
        await connection.close()

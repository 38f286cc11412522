"""Roles of the database that may submit jobs in their own transactions."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import asyncpg

from windlass.domain.values.errors import Conflict, NotFound
from windlass.store.postgres.store import PostgresStore

EVERYWHERE: Final = ("*",)
OWNED: Final = (
    "SELECT pg_has_role(current_user, nspowner, 'MEMBER') FROM pg_namespace "
    "WHERE nspname = 'windlass'"
)


class Submitter(NamedTuple):
    """A role and the namespaces that it may submit to; none means all."""

    role: str
    namespaces: Sequence[str]


async def allow_submit(url: str, role: str, namespaces: Sequence[str]) -> None:
    """Lets a role submit to these namespaces, and to no others."""
    async with _connection(url, role) as connection:
        await connection.execute("SELECT windlass.allow_submit($1, $2)", role, list(namespaces))


async def forbid_submit(url: str, role: str) -> None:
    """Revokes a role's permission."""
    async with _connection(url, role) as connection:
        known = await connection.fetchval("SELECT 1 FROM windlass.submitters WHERE role = $1", role)
        if known is None:
            raise Conflict("not_allowed", f"role {role} was not allowed to submit")
        await connection.execute("SELECT windlass.forbid_submit($1)", role)


async def submitters(url: str) -> list[Submitter]:
    """Returns all roles that may submit, beside members of the schema's owner."""
    async with _connection(url, "") as connection:
        rows = await connection.fetch("SELECT role, namespaces FROM windlass.submitters ORDER BY 1")
        return [Submitter(role, namespaces) for role, namespaces in rows]


@asynccontextmanager
async def _connection(url: str, role: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """Connects to a database with the schema; explains what only its owner may do."""
    store = await PostgresStore.connect(url, "submitters")
    try:
        async with store.connection() as connection:
            if await connection.fetchval(OWNED) is False:
                message = "only the owner of the schema windlass says and sees who may submit"
                raise Conflict("not_allowed", f"{message}: use its address")
            await store.check_schema()
            yield connection
    except asyncpg.UndefinedObjectError:
        raise NotFound("role", role) from None
    finally:
        await store.close()

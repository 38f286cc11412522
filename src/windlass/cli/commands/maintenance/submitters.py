"""`windlass db allow-submit` and its like: roles that submit in their own transactions."""

import asyncio
from pathlib import Path
from types import ModuleType

from windlass.cli.commands.maintenance.db import Data, Store, database, store_url
from windlass.cli.options.flags import Flag, Json, Many
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_json, say
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import check_name


@database.command
def allow_submit(
    role: str,
    /,
    *,
    namespace: Many = None,
    all_namespaces: Flag = False,
    store: Store = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Let a role of PostgreSQL submit jobs in its own transactions.

    It gets no right on any table: it cannot read jobs. Name all its namespaces: they replace
    those it had. Needs the address of the schema's owner.

    Parameters
    ----------
    role
        The role that the application logs in with.
    namespace
        A namespace it may submit to. Repeatable.
    all_namespaces
        It may submit to every namespace.
    """
    submitters = _submitters()
    named = namespace or []
    if bool(named) == all_namespaces:
        given = "both" if named else "neither"
        raise InvalidInput("--namespace", "given, or else --all-namespaces", given)
    for name in named:
        check_name("--namespace", name)
        if name == "*":
            raise InvalidInput("--namespace", "a name; or use --all-namespaces", name)
    chosen = submitters.EVERYWHERE if all_namespaces else named
    asyncio.run(submitters.allow_submit(_address(store, data), role, chosen))
    if json:
        print_json({"role": role, "namespaces": named, "all_namespaces": all_namespaces})
    else:
        where = "every namespace" if all_namespaces else ", ".join(named)
        say(f"{role} may submit to {where}")


@database.command
def deny_submit(
    role: str, /, *, store: Store = None, data: Data = None, json: Json = False
) -> None:
    """Take back the right of a role to submit; what it has committed is still carried out.

    Parameters
    ----------
    role
        The role that was allowed to submit.
    """
    submitters = _submitters()
    asyncio.run(submitters.forbid_submit(_address(store, data), role))
    if json:
        print_json({"role": role, "denied": True})
    else:
        say(f"{role} may not submit any more")


@database.command(name="submitters")
def list_submitters(*, store: Store = None, data: Data = None, json: Json = False) -> None:
    """List the roles of PostgreSQL that may submit in their own transactions."""
    submitters = _submitters()
    found = asyncio.run(submitters.submitters(_address(store, data)))
    if json:
        print_json([
            {"role": row.role, "namespaces": list(row.namespaces),
             "all_namespaces": not row.namespaces}
            for row in found
        ])  # fmt: skip
        return
    rows = [(row.role, ", ".join(row.namespaces) or "all") for row in found]
    print_table(("role", "namespaces"), rows, "no role but the owner of the schema may submit")


def _submitters() -> ModuleType:
    """Returns the module that talks to the database, if its driver is installed."""
    from windlass.domain.values.errors import needs

    with needs("postgres"):
        from windlass.store.postgres import submitters

    return submitters


def _address(store: str | None, data: Path | None) -> str:
    """Returns the address of a database; files have no roles."""
    from windlass.wiring.stores import is_postgres

    url = store_url(store, data)
    if not is_postgres(url):
        raise InvalidInput("store", "postgresql://…: files of SQLite have no roles", url)
    return url

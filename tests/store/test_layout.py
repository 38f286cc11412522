"""Each role of a transaction has a module in `store/sql`, with its statements beside it."""

import re
import typing
from dataclasses import InitVar

from tests.tidy.test_ratchet import ROOT
from windlass.store.sql.transaction import WriteTx

STORES = ROOT / "src" / "windlass" / "store"
BESIDE_THE_ROLES = {"methods", "queries", "session", "transaction"}


def modules(folder: str) -> set[str]:
    return {path.stem for path in (STORES / folder).glob("*.py")} - {"__init__"}


def roles() -> set[str]:
    found = modules("sql") - BESIDE_THE_ROLES
    assert len(found) > 15
    return found


def test_every_role_of_a_transaction_is_a_class_of_a_module_of_its_kind() -> None:
    fields = typing.get_type_hints(WriteTx).values()
    kinds = [kind for kind in fields if kind is not int and not isinstance(kind, InitVar)]
    homes = {kind.__module__.removeprefix("windlass.store.sql.") for kind in kinds}
    assert homes == roles() - {"snapshot"}


def test_flow_is_written_for_each_database() -> None:
    """It is the way of many jobs at once, in as few and as wide statements as each can do."""
    assert "flow" in modules("sqlite") & modules("postgres")


def test_sql_stands_beside_its_role_for_both_databases_or_for_one() -> None:
    files = [path.name for path in (STORES / "sql").glob("*.sql")]
    assert len(files) > 40
    names = re.compile(r"(\w+)(?:\.(?:sqlite|postgres))?\.sql")
    assert {match[1] for name in files if (match := names.fullmatch(name))} == roles()
    assert [name for name in files if not names.fullmatch(name)] == []

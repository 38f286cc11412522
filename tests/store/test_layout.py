"""Each role of the port has one module for both databases."""

import re

from tests.tidy.test_ratchet import ROOT

STORES = ROOT / "src" / "windlass" / "store"
PORT = ROOT / "src" / "windlass" / "ports" / "store"
FOLDERS = ("core", "fleet", "records")
BESIDE_THE_ROLES = {"queries", "session"}


def modules(folder: str) -> set[str]:
    return {path.stem for path in (STORES / folder).glob("*.py")} - {"__init__"}


def roles() -> set[str]:
    found = {path.stem for folder in FOLDERS for path in (PORT / folder).glob("*.py")}
    assert len(found) > 15
    return found - {"__init__"}


def test_both_databases_share_a_module_for_each_role_of_the_port() -> None:
    assert modules("sql") - BESIDE_THE_ROLES == roles() - {"flow"}


def test_flow_is_written_for_each_database() -> None:
    """It is the way of many jobs at once, in as few and as wide statements as each can do."""
    assert "flow" in modules("sqlite") & modules("postgres")


def test_sql_stands_beside_its_role_for_both_databases_or_for_one() -> None:
    files = [path.name for path in (STORES / "sql").glob("*.sql")]
    assert len(files) > 40
    names = re.compile(r"(\w+)(?:\.(?:sqlite|postgres))?\.sql")
    assert {match[1] for name in files if (match := names.fullmatch(name))} == roles()
    assert [name for name in files if not names.fullmatch(name)] == []

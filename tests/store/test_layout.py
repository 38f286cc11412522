"""The three stores have the same role files, and each role's SQL is next to it."""

import pytest

from tests.tidy.test_ratchet import ROOT

STORES = ROOT / "src" / "windlass" / "store"
PORT = ROOT / "src" / "windlass" / "ports" / "store"
FOLDERS = ("core", "fleet", "records")
OWN = {"core/history.py", "core/dependents.py"}  # parts of a role that one store needs
MAX_FILES = 15


def role_files(store: str) -> set[str]:
    return {
        f"{folder}/{path.name}"
        for folder in FOLDERS
        for path in (STORES / store / folder).glob("*.py")
    } - OWN


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_a_store_has_a_file_for_each_role_of_the_port(store: str) -> None:
    roles = {f"{folder}/{path.name}" for folder in FOLDERS for path in (PORT / folder).glob("*.py")}
    assert len(roles) > 15
    assert role_files(store) == roles


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_sql_of_a_role_is_next_to_it_in_both_dialects(folder: str) -> None:
    names = [
        sorted(path.stem for path in (STORES / store / folder).glob("*.sql"))
        for store in ("sqlite", "postgres")
    ]
    assert names[0] == names[1]
    roles = {path.stem for path in (PORT / folder).glob("*.py")} - {"__init__"}
    assert set(names[0]) == roles


def test_no_folder_of_the_stores_is_crowded() -> None:
    folders = [path for path in (*STORES.rglob("*"), *PORT.rglob("*"), STORES) if path.is_dir()]
    crowded = {
        path.name: count
        for path in folders
        if (count := len([it for it in path.glob("*.py") if it.name != "__init__.py"])) > MAX_FILES
    }
    assert crowded == {}

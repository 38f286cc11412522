"""The suite itself: a method that is added to the port needs a test here."""

from pathlib import Path
from typing import get_type_hints

from tests.conformance.everything import PENDING_ROLES
from windlass.ports.store import Tx

SUITE = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))


def roles() -> dict[str, type]:
    """The roles of a transaction and their protocols."""
    hints = {
        name: get_type_hints(member.fget)["return"]
        for name, member in vars(Tx).items()
        if isinstance(member, property)
    }
    return {name: kind for name, kind in hints.items() if kind is not int}


def test_every_method_of_every_role_is_called_somewhere() -> None:
    methods = [
        (role, name) for role, kind in roles().items() for name in vars(kind) if name[0] != "_"
    ]
    untested = [(role, name) for role, name in methods if f"tx.{role}.{name}(" not in SUITE]
    assert len(methods) > 60
    assert [method for method in untested if method[0] not in PENDING_ROLES] == []
    assert sorted({role for role, _ in untested}) == PENDING_ROLES

"""Codes in SQL have names, the names come from the domain, and functions stay short."""

import re
from pathlib import Path

import pytest

from tests.tidy.test_ratchet import ALLOWED, ROOT, complaints
from windlass.domain.lifecycle.states import State
from windlass.store.sql.queries import CODES, fill_in

STORE = ROOT / "src" / "windlass" / "store"
FILES = sorted(STORE.rglob("*.sql"))
FUNCTION_LIMIT = 70

# Columns that hold a code, compared with, set to or chosen by a number that has no name.
CODED = r'"?\b(?:state|kind|status|failure|manual|from_state|to_state|from|to|new_state|before)\b"?'
BARE = (
    re.compile(rf"{CODED} *(?:=|<>|!=|<=|>=|<|>) *\d", re.IGNORECASE),
    re.compile(rf"{CODED} *(?:NOT +)?(?:IN *\(|BETWEEN) *\d", re.IGNORECASE),
    re.compile(rf"CASE +(?:\w+\.)?{CODED}\s+WHEN +\d", re.IGNORECASE),
    re.compile(r"\bflags *& *\d", re.IGNORECASE),
    re.compile(r"::smallint *(?:=|<>|<|>) *\d", re.IGNORECASE),
)
FUNCTION = re.compile(r"^CREATE OR REPLACE FUNCTION (\w+).*?\$\$;$", re.DOTALL | re.MULTILINE)


def bare_numbers(sql: str) -> list[str]:
    """Returns where a code is a bare number, comments left out."""
    text = re.sub(r"--[^\n]*", "", sql)
    return [match[0] for pattern in BARE for match in pattern.finditer(text)]


def function_sizes(path: Path) -> dict[str, int]:
    name = path.relative_to(ROOT).as_posix()
    found = FUNCTION.finditer(path.read_text())
    return {f"{name}::{match[1]}": len(match[0].splitlines()) for match in found}


def test_a_name_becomes_the_number_of_the_domain() -> None:
    filled = fill_in("state = {state.retrying}, '{}', {1,2}", "some.sql")
    assert filled == f"state = {State.RETRYING.code}, '{{}}', {{1,2}}"


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"some.sql: unknown code \{state.sleeping\}"):
        fill_in("state = {state.sleeping}", "some.sql")


def test_every_state_has_a_name() -> None:
    assert {CODES[f"state.{state.name.lower()}"] for state in State} == {
        str(state.code) for state in State
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(STORE).as_posix())
def test_no_code_is_a_bare_number(path: Path) -> None:
    assert bare_numbers(path.read_text()) == []


@pytest.mark.parametrize(
    "sql",
    [
        "WHERE l.state = 4",
        "WHERE state IN (5, 6)",
        'e."from" BETWEEN 3 AND 6',
        "SET manual = 0",
        "CASE from_state\n WHEN 0 THEN",
        "j.flags & 16 <> 0",
        "$2::smallint > 8",
    ],
)
def test_bare_numbers_are_found(sql: str) -> None:
    assert bare_numbers(sql)


def test_functions_of_the_database_are_short() -> None:
    sizes = {name: size for path in FILES for name, size in function_sizes(path).items()}
    assert "src/windlass/store/postgres/functions/sync_plain.sql::sync_plain" in sizes
    assert complaints(sizes, FUNCTION_LIMIT, ALLOWED["sql_functions"]) == []

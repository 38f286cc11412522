"""The loader of named statements."""

import pytest

from windlass.store.sql.queries import load_queries, parse_queries


def test_a_block_is_a_name_a_reason_and_a_statement() -> None:
    text = """
    -- What this file is for.

    -- name: one
    -- Because of this.
    SELECT 1
      FROM   jobs;

    -- name: two
    -- Because of that.
    SELECT 2
    """
    assert parse_queries(text, "q.sql") == {"one": "SELECT 1 FROM jobs", "two": "SELECT 2"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-- name: a\nSELECT 1", "expected a comment that says why below 'a'"),
        ("-- name: a\n-- Why.", "expected a statement below 'a'"),
        ("-- name: a\n-- Why.\nSELECT 1\n-- name: a\n-- Why.\nSELECT 2", "got 'a' twice"),
        ("SELECT 1", "expected `-- name: …` before the statement"),
    ],
)
def test_a_bad_file_is_refused_by_name(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="q.sql: .*" + complaint):
        parse_queries(text, "q.sql")


def test_the_queries_of_a_package_are_found() -> None:
    assert load_queries("sqlite")["commit"] == "COMMIT"

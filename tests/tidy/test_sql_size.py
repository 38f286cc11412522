"""Functions in the database stay short enough to read, like those in Python."""

import re
import tomllib
from pathlib import Path

from tests.tidy.test_ratchet import complaints

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = tomllib.loads(Path(__file__).with_name("allowed.toml").read_text())
LIMIT = 70

FUNCTION = re.compile(
    r"^CREATE (?:OR REPLACE )?FUNCTION (?P<name>[\w.]+).*?AS (?P<quote>\$\w*\$).*?(?P=quote)[^;]*;",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)


def sizes(files: dict[str, str]) -> dict[str, int]:
    return {
        f"{path}::{match['name']}": match[0].count("\n") + 1
        for path, text in files.items()
        for match in FUNCTION.finditer(text)
    }


def test_no_function_of_the_database_is_too_long() -> None:
    paths = sorted((ROOT / "src").rglob("*.sql"))
    files = {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}
    found = sizes(files)
    assert found, "no SQL function was found: the pattern no longer fits the files"
    assert complaints(found, LIMIT, ALLOWED["sql_functions"]) == []


def test_the_lines_of_a_function_are_counted_from_its_head_to_its_end() -> None:
    text = "CREATE FUNCTION a(x int)\nRETURNS int AS $$\nSELECT 1;\n$$ LANGUAGE sql;\nSELECT 2;\n"
    assert sizes({"f.sql": text}) == {"f.sql::a": 4}

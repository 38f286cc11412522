"""The guide names the tests that hold the rules of the pipeline: they exist."""

import re
from pathlib import Path

HERE = Path(__file__).parent
GUIDE = HERE.parents[1] / "docs" / "guides" / "fuzzing-running.md"


def test_each_rule_of_the_guide_names_a_test_that_exists() -> None:
    rules = GUIDE.read_text().partition("## Rules of the pipeline")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", rules)
    assert len(named) >= 19
    for path, name in named:
        assert f"def {name}(" in (HERE / path).read_text(), f"{path}::{name}"
    rows = [row for row in rules.splitlines() if row.startswith("| ")][1:]
    assert all("::test_" in row.split("|")[2] for row in rows), "a rule without a test"

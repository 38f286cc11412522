"""The guide to retries and keys: its module is imported and its commands are run."""

import re
from pathlib import Path

from tests.cli.guide import GUIDES, carry_out
from tests.cli.program import Program

MODULE = re.compile(r"(?ms)^```python\n# (?P<name>[a-z]+\.py)\n(?P<code>.*?)^```$")


def test_the_commands_of_the_guide_do_what_it_says(up: Program, tmp_path: Path) -> None:
    module = MODULE.search((GUIDES / "retries.md").read_text())
    assert module is not None
    (up.modules / module["name"]).write_text(module["code"])
    tried, planned, functions, _ = carry_out("retries.md", up, tmp_path)
    assert "retries exhausted (2 of 2)" in tried
    assert "2 of 2 used; backoff initial=10ms,factor=3.0,max=1s" in tried
    assert re.findall(r"^(\d) +failed", tried, re.MULTILINE) == ["1", "2", "3"]
    assert "fetch" in planned
    assert "page 7 at try 3" in functions
    assert "not retried, as its task raised windlass.Abort" in functions

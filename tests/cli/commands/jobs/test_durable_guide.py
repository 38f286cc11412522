"""The guide to durable functions: its module is imported and its commands are run."""

import re
from pathlib import Path

from tests.cli.guide import GUIDES, carry_out
from tests.cli.program import Program

MODULE = re.compile(r"(?ms)^```python\n# (?P<name>[a-z]+\.py)\n(?P<code>.*?)^```$")


def test_the_commands_of_the_guide_do_what_it_says(up: Program, tmp_path: Path) -> None:
    module = MODULE.search((GUIDES / "durable.md").read_text())
    assert module is not None
    (up.modules / module["name"]).write_text(module["code"])
    first, questions = carry_out("durable.md", up, tmp_path)
    assert "waits for an answer to 'Ship order 17?' since" in first
    assert "windlass answer" in first
    for key, kind in (
        ("charge", "call"),
        ("wait_for packed 17 1 (signal packed 17", "signal"),
        ("sleep 1", "sleep"),
        ("ask 1 (Ship order 17?", "question"),
    ):
        assert re.search(rf"{re.escape(key)}.*{kind} +done", first)
    assert '["receipt of 17",{"parcels":2},true]' in first
    assert "no questions" in questions


def test_signals_and_answers_are_checked_by_the_command_line(up: Program) -> None:
    assert up.json("send", "nobody waits", "5", "--key", "k")["told"] == 0
    assert "was sent before" in up.text("send", "nobody waits", "5", "--key", "k")
    refused = up("send", "go", "no json")
    assert refused.returncode == 2
    assert "JSON, or text with --text" in refused.stderr
    assert up.text("send", "go", "no json", "--text").endswith("0 waiting jobs continue")
    job = up.text("submit", "--", "true")
    nothing = up("answer", job, "true")
    assert nothing.returncode != 0
    assert "no open question" in nothing.stderr

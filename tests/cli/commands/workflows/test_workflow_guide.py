"""The commands of the guides to workflows run, on the files they show."""

import re
from pathlib import Path

from tests.cli.guide import carry_out
from tests.cli.program import Program


def test_the_commands_of_the_guides_do_what_they_say(up: Program, tmp_path: Path) -> None:
    first = carry_out("workflows.md", up, tmp_path)
    said = iter([*first, *carry_out("workflows-large.md", up, tmp_path)])

    def find(mark: str) -> str:
        return next(output for output in said if mark in output)

    diamond = find("workflow diamond")
    assert re.search(r"failed +lint .*allowed to fail", diamond)
    assert re.search(r"completed +test +2 ", diamond)
    conditions = find("workflow release")
    planned, _, ran = conditions.partition("nothing was submitted")
    assert "test[linux]" in planned
    assert "check" not in planned
    assert "test[windows]" not in planned
    for job in ("check", "test[linux]", "test[windows]"):
        assert re.search(rf"{re.escape(job)} \d+: completed", ran)
    assert re.search(r'outputs +{"version": ?"1.2"}', find("workflow outputs"))
    assert "workflow greet-nobody" in find("greet-nobody")
    rollback = find("workflow rollback")
    assert dict(re.findall(r"^(\w+) \d+: (\w+)", rollback, re.MULTILINE)) == {
        "deploy": "failed", "check": "aborted", "rollback": "completed", "tell": "completed",
        "praise": "skipped", "clean": "completed",
    }  # fmt: skip
    assert "build[3.13,debian]" in find("digraph")
    planner = find("workflow planner")
    assert planner.count(": completed") == 6  # the planner, its three parts, the report, all

"""Commands about templates and schedules, and the guide to them, against a real installation."""

import json
import re
from pathlib import Path

from tests.cli.guide import carry_out
from tests.cli.program import Program


def test_every_command_of_the_guide_runs(up: Program, tmp_path: Path) -> None:
    templates, schedules, reactions = carry_out("schedules.md", up, tmp_path)
    assert templates.startswith("nightly@1\n")
    assert "next at 20" in schedules
    assert "Europe/Berlin" in schedules
    assert "submit" in reactions


def test_a_template_is_made_of_all_its_files(up: Program, tmp_path: Path) -> None:
    inner = "name: inner\njobs:\n  one:\n    run: [echo, inside]\n    env: {PYTHON: 3.10}\n"
    (tmp_path / "inner.yaml").write_text(inner)
    outer = tmp_path / "outer.yaml"
    outer.write_text("name: outer\njobs:\n  sub: {workflow: inner.yaml}\n")
    assert up.text("templates", "apply", "outer", str(outer)) == "outer@1"
    assert up.text("templates", "put", "outer", str(outer)) == "outer@1"  # the old name
    number = up.text("templates", "start", "outer")
    (listed,) = up.json("workflows", "list", "--name", "outer")
    assert (listed["id"], listed["template"]) == (int(number), "outer@1")
    (job,) = up.json("jobs", "--name", "sub/one")
    assert job["args"]["argv"] == ["echo", "inside"]
    assert job["args"]["env"] == {"PYTHON": "3.10"}
    assert up.text("templates", "remove", "outer") == "done"
    assert up.text("templates", "remove", "outer") == "nothing to do"


def test_what_is_wrong_is_said_with_its_own_exit_code(up: Program, tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text("name: good\njobs:\n  one: {run: ['true']}\n")
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\njobs:\n  one: {rum: ['true']}\n")
    jobs = '[{"task": "shell", "args": {"argv": ["true"]}}]'
    for words, code, said in (
        (("templates", "apply", "t", str(tmp_path / "none.yaml")), 2, "readable: No such file"),
        (("templates", "apply", "t", str(bad)), 2, "rum"),
        (("templates", "apply", "a@b", str(good)), 2, "without @"),
        (("templates", "show", "unknown"), 4, "unknown"),
        (("templates", "start", "unknown"), 4, "unknown"),
        (("schedules", "apply", "s", "61 * * * *", "--jobs", jobs), 2, "cron"),
        (("schedules", "apply", "s", "@daily", "--zone", "Mars", "--jobs", jobs), 2, "zone"),
        (("schedules", "apply", "s", "@daily"), 2, "template"),
        (("schedules", "apply", "s", "--jobs", jobs), 2, "neither"),
        (("schedules", "apply", "s", "@daily", "--every", "9m", "--jobs", jobs), 2, "both"),
        (("schedules", "apply", "s", "--every", "0.5s", "--jobs", jobs), 2, "at least 1s"),
        (("schedules", "apply", "s", "--every", "soon", "--jobs", jobs), 2, "every"),
        (("schedules", "apply", "s", "@daily", "--template", "unknown"), 4, "unknown"),
        (("schedules", "apply", "s", "@daily", "--jobs", "{"), 2, "JSON list of jobs"),
        (("schedules", "apply", "s", "@daily", "--jobs", "@/nowhere"), 2, "readable file"),
        (("schedules", "run", "unknown"), 4, "unknown"),
    ):
        done = up(*words)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        assert said in done.stderr, (words, done.stderr)
        assert "Traceback" not in done.stderr


def test_an_interval_is_shown_wherever_a_cron_line_is(up: Program) -> None:
    jobs = '[{"task": "shell", "args": {"argv": ["true"]}}]'
    assert "next at" in up.text("schedules", "apply", "beat", "--every", "90m", "--jobs", jobs)
    shown = up.json("schedules", "show", "beat")
    assert (shown["cron"], shown["every"], shown["words"]) == (None, "1h30m", "Every 1h30m")
    assert shown["next_at"] == shown["coming"][0]
    assert "beat: every 1h30m, next at" in up.text("schedules", "show", "beat")
    assert "every 1h30m" in up.text("schedules", "list")
    up.text("schedules", "delete", "beat")


def test_a_template_with_control_characters_is_shown_as_harmless_json(
    up: Program, tmp_path: Path
) -> None:
    word = "\x1b]52;c;AAAA\x07\x7f\x9b2J\u202e"
    body = {"name": "t", "jobs": {"a": {"run": ["echo", word]}}}
    file = tmp_path / "controls.json"
    file.write_text(json.dumps(body))
    up.text("templates", "apply", "controls", str(file))
    shown = up.text("templates", "show", "controls").partition("\n")[2]
    assert json.loads(shown)["jobs"]["a"]["run"] == ["echo", word]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown), ascii(shown)
    up.text("templates", "remove", "controls")

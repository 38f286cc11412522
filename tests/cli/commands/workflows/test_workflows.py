"""Commands about workflows, against a running installation."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.program import MAX_S, Program

EXAMPLES = Path(__file__).resolve().parents[4] / "examples" / "workflows"
DIAMOND = str(EXAMPLES / "diamond.yaml")
RELEASE = str(EXAMPLES / "release.yaml")


def test_a_diamond_from_submit_to_its_end(up: Program) -> None:
    number = up.text("workflows", "submit", DIAMOND)
    watched = up("workflows", "watch", number)
    assert watched.returncode == 0, watched
    assert watched.stdout.endswith(f"workflow diamond {number}: completed\n")
    states = {job["name"]: (job["state"], job["attempt"]) for job in jobs_of(up, number)}
    assert states == {
        "fetch": ("completed", 1), "lint": ("failed", 1), "test": ("completed", 2),
        "publish": ("completed", 1),
    }  # fmt: skip
    (publish,) = [job for job in jobs_of(up, number) if job["name"] == "publish"]
    assert up.text("logs", str(publish["id"])) == "fetched"
    shown = up.json("workflows", "show", number)
    assert (shown["state"], shown["jobs"], shown["labels"]) == ("completed", 4, {"kind": "demo"})
    assert {job["name"] for job in shown["job_list"]} == {"fetch", "lint", "test", "publish"}
    told = up.text("workflows", "show", number)
    assert "completed" in told
    assert "publish" in told
    assert "allowed to fail: exit code 1" in told
    few = up.text("workflows", "show", number, "--limit", "1")
    assert "lint" in few
    assert "publish" not in few
    (listed,) = [w for w in up.json("workflows", "list", "--name", "diamond", "--limit", "5")
                 if w["id"] == int(number)]  # fmt: skip
    assert listed["counts"] == {"completed": 3, "failed": 1}
    assert "diamond" in up.text("workflows", "list", "--label", "kind=demo", "--state", "completed")


def jobs_of(up: Program, number: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = up.json("jobs", "--workflow", number)
    return found


def test_changes_are_told_line_by_line_to_programs(up: Program) -> None:
    number = up.text("workflows", "submit", DIAMOND)
    done = up("workflows", "watch", number, "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1] == {
        "name": "workflow diamond", "id": int(number), "state": "completed", "reason": None,
    }  # fmt: skip
    assert {"fetch", "lint", "test", "publish"} <= {line["name"] for line in lines}


def test_a_terminal_gets_a_tree(up: Program) -> None:
    number = up.text(
        "workflows", "submit", RELEASE, "--param", "version=tree", "--param", "shards=10"
    )
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "windlass", "workflows", "watch", number],
        env=up.environment | {"TERM": "xterm"}, stdout=theirs, stdin=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        os.close(theirs)
        said = b""
        while piece := read_terminal(ours):
            said += piece
        assert process.wait(MAX_S) == 0
    os.close(ours)
    last = said.decode().rpartition(f"workflow {number} release-tree")[2]
    for words in ("build × 3", "fuzz × 10", "10 completed", "package", "archive", "announce"):
        assert words in last, last
    assert "19/19" in said.decode()


def read_terminal(descriptor: int) -> bytes:
    """What came, or nothing once the other side is closed."""
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def test_a_workflow_that_fails_says_so_and_is_retried(up: Program, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    file = tmp_path / "flaky.yaml"
    file.write_text(
        f"name: flaky\njobs:\n  a: {{run: [test, -e, '{flag}']}}\n"
        "  b: {run: [echo, b], after: a}\n"
    )
    number = up.text("workflows", "submit", str(file))
    failed = up("workflows", "watch", number)
    assert failed.returncode == 1
    assert "b " in failed.stdout
    assert ": aborted" in failed.stdout
    flag.write_text("")
    assert up.text("workflows", "retry", number, "--failed") == number
    assert up("workflows", "watch", number).returncode == 0
    assert up.json("workflows", "show", number)["run"] == 2
    anew = up.text("workflows", "retry", number)
    assert anew != number
    assert up("workflows", "watch", anew).returncode == 0
    graph = up.json("workflows", "graph", number)
    assert [box["states"] for box in graph["boxes"]] == [{"completed": 1}, {"completed": 1}]
    assert graph["edges"] == [{"from": "a", "to": "b", "any_end": False}]


def test_a_workflow_is_canceled_and_kept_single_by_its_key(up: Program, tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_text("name: long\nkey: from-file\njobs: {a: {run: [sleep, 1000]}}\n")
    first = up.text("workflows", "submit", str(file), "--key", "only-one")
    again = up("workflows", "submit", str(file), "--key", "only-one")
    assert again.stdout.strip() == first
    assert "was submitted before and has this key" in again.stderr
    other = up.text("workflows", "submit", str(file))
    assert other != first
    assert up.json("workflows", "show", other)["key"] == "from-file"
    for number in (first, other):
        assert up.json("workflows", "cancel", number, "--reason", "enough")["applied"] is True
        assert up("workflows", "watch", number).returncode == 1
        assert up.text("workflows", "cancel", number) == f"{number}: already canceled"
    assert (
        up.text("workflows", "submit", str(file), "--key", "only-one", "--priority", "-5") != first
    )
    (running,) = up.json("workflows", "list", "--key", "only-one", "--state", "queued", "--state",
                         "dispatching")  # fmt: skip
    assert running["priority"] == -5
    assert up.text("workflows", "cancel", str(running["id"])).startswith(str(running["id"]))


def test_a_dry_run_and_a_graph_need_no_server(tmp_path: Path) -> None:
    alone = Program(tmp_path)
    plan = alone.json("workflows", "submit", RELEASE, "--dry-run", "--param", "version=1.2")
    assert plan["workflow"]["key"] == "release-1.2"
    assert len(plan["jobs"]) == 12
    assert "build[3.11,debian]" in alone.text(
        "workflows", "submit", RELEASE, "--dry-run", "--param", "version=1.2"
    )
    drawn = alone.text("workflows", "graph", DIAMOND, "--format", "mermaid")
    assert drawn.startswith("flowchart LR")
    assert alone.text("workflows", "graph", DIAMOND).startswith('digraph "diamond"')
    assert json.loads(alone.text("workflows", "schema"))["$ref"] == "#/$defs/WorkflowFile"


def test_what_is_wrong_is_said_with_file_and_line_and_nothing_is_written(
    up: Program, tmp_path: Path
) -> None:
    file = tmp_path / "bad.yaml"
    before = up.json("jobs", "--limit", "1")[0]["id"]
    for text, words in (
        ("name: w\njobs:\n  a: {run: [x], after: b}\n  b: {run: [x], after: a}\n",
         "bad.yaml:3: expected after to be free of cycles, got a → b → a"),
        ("name: w\njobs:\n  a: {run: [x]}\n  b:\n    run: [x]\n    after: [a, 999999]\n",
         "bad.yaml:6: expected jobs.b.after to be the id of an existing job, got 999999"),
        ("name: w\njobs:\n  a:\n    run: [x]\n    retries: many\n", "bad.yaml:5: "),
        ("name: w\nparameters:\n  v: {}\njobs: {}\n", "bad.yaml:3: expected parameters.v"),
    ):  # fmt: skip
        file.write_text(text)
        done = up("workflows", "submit", str(file))
        assert done.returncode == 2, done
        assert words in done.stderr
        assert "Traceback" not in done.stderr
    assert up.json("jobs", "--limit", "1")[0]["id"] == before
    file.write_text("name: other\nnamespace: other\njobs: {a: {run: ['true']}}\n")
    number = up.text("workflows", "submit", str(file))
    (theirs,) = jobs_of(up, number)
    assert theirs["namespace"] == "other"
    file.write_text(f"name: w\njobs:\n  a: {{run: [x], after: {theirs['id']}}}\n")
    done = up("workflows", "submit", str(file))
    assert done.returncode == 2
    words = f"bad.yaml:3: expected jobs.a.after to be the id of an existing job, got {theirs['id']}"
    assert words in done.stderr
    assert "it may name jobs of namespace default only" in done.stderr


def test_what_is_not_there_is_said_with_its_own_exit_code(up: Program, tmp_path: Path) -> None:
    for arguments, code in (
        (("submit", str(tmp_path / "no.yaml")), 2),
        (("submit", "--dryrun", DIAMOND), 2),
        (("submit", DIAMOND, "--param", "x"), 2),
        (("submit", DIAMOND, "--param", "x=1"), 2),
        (("show", "999999"), 4),
        (("watch", "999999"), 4),
        (("cancel", "999999"), 4),
        (("graph", "999999"), 4),
        (("start", "nobody"), 4),
        (("start", "nobody@new"), 2),
    ):
        done = up("workflow", *arguments)
        assert done.returncode == code, (arguments, done.stderr)
        assert "Traceback" not in done.stderr


def test_a_template_is_started_with_parameters(up: Program) -> None:
    up.text("templates", "apply", "cut", RELEASE)
    number = up.text("workflows", "start", "cut", "--param", "version=9", "--param", "shards=1")
    assert up("workflows", "watch", number).returncode == 0
    shown = up.json("workflows", "show", number)
    assert (shown["name"], shown["template"]) == ("release-9", "cut@1")
    assert shown["parameters"] == {"version": "9", "shards": 1}
    assert {job["name"] for job in jobs_of(up, number)} >= {"fuzz[0]", "package/sign", "announce"}
    refused = up("workflows", "start", "cut@1", "--param", "version=9", "--param", "shards=4")
    assert refused.returncode == 2
    assert "parameters.shards to be one of 1, 3, 10, got 4" in refused.stderr


def test_control_characters_in_a_reason_are_harmless_to_a_program_that_watches(
    up: Program, tmp_path: Path
) -> None:
    reason = "no\x1b]52;c;AAAA\x07\x7f\x9b2J"
    file = tmp_path / "never.yaml"
    file.write_text("name: never\njobs: {a: {run: [echo], requires: ['never == 1']}}\n")
    number = up.text("workflows", "submit", str(file))
    assert up("workflows", "cancel", number, "--reason", reason).returncode == 0
    shown = up("workflows", "watch", number, "--json").stdout
    assert reason in json.loads(shown.splitlines()[-1])["reason"]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown), ascii(shown)

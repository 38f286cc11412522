"""Commands inside of jobs: what they submit joins the job's own workflow."""

import sys
from pathlib import Path

from tests.cli.program import Program

WINDLASS = f"{sys.executable} -m windlass"
MORE = """
name: more
priority: "+2"
parameters: {word: {}}
jobs:
  first: {run: [echo, "${{ parameters.word }}"]}
  second: {run: [echo, b], after: first, priority: "-1"}
"""


def run_planner(up: Program, folder: Path, script: str) -> tuple[str, list[str]]:
    """Run a workflow of one shell job to its end: its id, and what the job printed."""
    (folder / "more.yaml").write_text(MORE)
    (folder / "script.sh").write_text(script.replace("windlass", WINDLASS))
    plan = folder / "plan.yaml"
    plan.write_text(
        "name: planned\npriority: 5\njobs:\n"
        f"  plan: {{run: [sh, -c, '. {folder}/script.sh 2>&1']}}\n"
    )
    number = up.text("workflows", "submit", str(plan))
    assert up("workflows", "watch", number).returncode == 0
    (planner,) = (job["id"] for job in up.json("jobs", "--workflow", number, "--name", "plan"))
    return number, up.text("logs", str(planner)).splitlines()


def test_a_shell_job_adds_jobs_once_for_each_key_relative_to_itself(
    up: Program, tmp_path: Path
) -> None:
    add = f"windlass workflows add - --param word=hello --key file < {tmp_path}/more.yaml"
    number, said = run_planner(
        up, tmp_path,
        "windlass submit --key one --priority +1 --name child -- true\n" * 2
        + f"{add}\n" * 2
        + "windlass submit --name 'part-{index}' --count 2 -- true\n",
    )  # fmt: skip
    child, again, first, second, *same = said
    assert child == again
    assert same[:2] == [first, second]
    jobs = {job["name"]: job for job in up.json("jobs", "--workflow", number)}
    assert set(jobs) == {"plan", "child", "first", "second", "part-0", "part-1"}
    assert [jobs[name]["priority"]["base"] for name in ("child", "first", "second", "part-0")] == [
        6, 7, 4, 5,
    ]  # fmt: skip
    assert jobs["second"]["after"] == [int(first)]
    assert up.text("logs", first) == "hello"


def test_what_is_refused_inside_of_a_job_is_told_there(up: Program, tmp_path: Path) -> None:
    number, said = run_planner(
        up, tmp_path,
        "windlass submit --key one -- true\n"
        "windlass submit --key one -- false\n"
        "windlass submit --workflow 1 -- true\n"
        f"windlass workflows add {tmp_path}/more.yaml\n"
        f"WINDLASS_AGENT={tmp_path}/nobody windlass submit -- true\n"
        "true\n",
    )  # fmt: skip
    told = " ".join(said[1:])
    for words in (
        "this submission's key was used before with other jobs",
        "expected --workflow to be unset inside a job",
        "more.yaml:4: expected parameters.word to be given",
        f"the agent of this job does not answer at {tmp_path}/nobody",
    ):
        assert words in told
    assert "Traceback" not in told
    assert up.json("workflows", "show", number)["jobs"] == 2


def test_jobs_are_added_from_outside_too_until_the_workflow_ends(
    up: Program, tmp_path: Path
) -> None:
    (tmp_path / "more.yaml").write_text(MORE)
    gate = tmp_path / "gate.yaml"
    gate.write_text("name: gate\njobs:\n  gate: {run: ['true'], unblock: manual}\n")
    number = up.text("workflows", "submit", str(gate))
    (waiting,) = (job["id"] for job in up.json("jobs", "--workflow", number))
    words = ("workflows", "add", str(tmp_path / "more.yaml"), "--param", "word=x", "--to", number)
    added = up.text(*words, "--key", "k").splitlines()
    assert up.text(*words, "--key", "k").splitlines() == added
    single = up.text("submit", "--workflow", number, "--after", str(waiting), "--", "true")
    assert up.json("show", single)["workflow"] == int(number)
    up.text("unblock", str(waiting))
    assert up("workflows", "watch", number).returncode == 0
    late = up(*words, "--key", "late")
    assert "has ended (completed)" in late.stderr
    assert len(up.text(*words, "--key", "late", "--reopen").splitlines()) == 2
    assert up("workflows", "watch", number).returncode == 0
    assert up.json("workflows", "show", number)["run"] == 2
    assert "--to" in up(*words[:-2]).stderr

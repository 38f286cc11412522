"""Several branches through the commands: what people see of them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fuzzing.roles.test_fuzzer import fuzz_until_bug
from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import BROKEN, FINE, World
from tests.fuzzing.trackers.servers import a_finding
from tests.support.running import run
from windlass_fuzz.findings.record import OnBranch
from windlass_fuzz.sources.branches import MAX_BRANCHES
from windlass_fuzz.state.documents import BranchProgress, Entry, State
from windlass_fuzz.trackers.issue_text import note_of

BRANCHES = "branches: [main, 'release/*']\ncommits: {window: all, extensions: [.sh]}"
R1 = "release/1"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, more=BRANCHES)


def forked(world: World) -> dict[str, str]:
    """Makes a bug that a release branch has too, and that only main has fixed."""
    made = {"good": world.commit("good"), "bug": world.commit("bug", solver_sh=BROKEN)}
    world.git("checkout", "--quiet", "-b", R1)
    made["r1"] = world.commit("r1", solver_sh=BROKEN + "#\n")
    world.git("checkout", "--quiet", "main")
    made["fix"] = world.commit("fix", solver_sh=FINE)
    return made


def test_a_bug_that_only_main_has_fixed_is_open_on_the_release_branch(world: World) -> None:
    made = forked(world)
    fuzz = Commands(world)
    assert fuzz.ask("manager", "scripted")["queued"] == [
        made["good"], made["bug"], made["fix"], made["r1"],
    ]  # fmt: skip
    for _ in made:
        assert run(world.build()).outcome == "built"
    fuzz.ask("manager", "scripted")
    status = fuzz.ask("status", "scripted")
    scheduled = {one["hash"]: one["branches"] for one in status["schedule"]}
    assert scheduled[made["bug"]] == ["main", R1]
    assert (scheduled[made["fix"]], scheduled[made["r1"]]) == (["main"], [R1])
    assert [(one["name"], one["scheduled"]) for one in status["branches"]] == [("main", 3), (R1, 3)]

    report = run(fuzz_until_bug(world, made["bug"]))
    assert report.findings
    assert fuzz.ask("findings", "recheck", "scripted", made["fix"]) == []
    (finding,) = fuzz.ask("findings", "list", "scripted")
    known = {one["name"]: (one["state"], one["since"]) for one in finding["branches"]}
    assert known == {"main": ("fixed", made["bug"]), R1: ("alive", made["bug"])}
    assert f"alive on {R1}; fixed on main" in fuzz.run("findings", "list", "scripted")[1]
    shown = fuzz.run("findings", "show", "scripted", finding["key"])[1]
    assert f"- `{R1}`: alive since {made['bug'][:12]}" in shown
    assert f"- `main`: fixed in {made['fix'][:12]}" in shown
    assert f"  on {R1}\n" in fuzz.run("status", "scripted")[1]


def test_in_a_clone_the_branches_of_its_origin_count(world: World) -> None:
    """As on GitHub's runners, where only one branch is checked out."""
    made = forked(world)
    origin, clone = world.repository, world.folder / "clone"
    world.git("clone", "--quiet", str(origin), str(clone))
    world.repository = clone
    assert world.git("branch", "--format=%(refname:short)") == "main"
    fuzz = Commands(world)
    assert made["r1"] in fuzz.ask("manager", "scripted")["queued"]
    for _ in made:
        run(world.build())
    assert run(fuzz_until_bug(world, made["r1"])).findings
    fuzz.ask("findings", "recheck", "scripted", made["fix"])
    (finding,) = fuzz.ask("findings", "list", "scripted")
    known = {one["name"]: (one["state"], one["watched"]) for one in finding["branches"]}
    assert known == {"main": ("fixed", True), R1: ("alive", True)}
    assert "HEAD" not in [one["name"] for one in fuzz.ask("status", "scripted")["branches"]]
    world.more = "branches: [main, release/1]"
    assert Commands(world).run("init", "scripted")[0] == 0
    world.git("checkout", "--quiet", "--detach", "origin/release/1")
    world.commit("change", solver_sh=BROKEN + "#\n#\n", **{"tests/a.txt": "limit 0\n"})
    words = ("--budget", "1s", "--output", str(world.folder / "out"))
    Commands(world).run("check", "scripted", *words)
    result = json.loads((world.folder / "out" / "result.json").read_text())
    assert (result["branch"], result["base"]) == (R1, made["r1"])


def test_status_names_the_branches_that_are_left_out_or_gone(world: World) -> None:
    commit = world.commit("good")
    at = world.clock.now_ms()
    branches = {
        "main": BranchProgress(commit, at),
        "release/2": BranchProgress(commit, at, left_out=True),
        "release/3": BranchProgress(commit, at, gone_at_ms=at),
    }
    run(world.pipeline.state.update(lambda _: State(commit, at, {}, branches)))
    run(world.pipeline.schedule.update(lambda _: (Entry(commit, branches=("main",)),)))
    said = Commands(world).run("status", "scripted")[1]
    assert f"branches  main  {commit[:12]}, " in said
    assert "1 scheduled\n" in said
    assert "release/3  not in the repository, noticed " in said
    assert "left out, as newer ones are watched: release/2\n" in said
    assert "never fuzzed  on main\n" in said


def test_the_manager_says_which_branches_are_left_out_and_which_are_gone(world: World) -> None:
    commit = world.commit("good")
    for number in range(MAX_BRANCHES):
        world.git("branch", f"release/{number:02}", commit)
    fuzz = Commands(world)
    said = fuzz.run("manager", "scripted")[1]
    assert "leave out, as newer branches are watched: release/" in said
    assert "main: start from the newest 1: no commit was checked before\n" in said
    world.git("branch", "--quiet", "-D", "release/00")
    assert "release/00: the repository has no such branch" in fuzz.run("manager", "scripted")[1]


def test_a_branch_that_is_named_must_exist_at_the_start(tmp_path: Path) -> None:
    world = World(tmp_path, more="branches: [main, 'release/*', next]")
    world.commit("good")
    fuzz = Commands(world)
    code, _, complained = fuzz.run("init", "scripted")
    assert code != 0
    assert "has no branch next; change `branches`" in complained
    world.git("branch", "next")
    assert fuzz.run("init", "scripted")[0] == 0


def test_a_change_is_checked_against_the_nearest_branch(world: World) -> None:
    made = forked(world)
    world.git("checkout", "--quiet", "-b", "change", R1)
    head = world.commit("change", solver_sh=BROKEN + "#\n#\n", **{"tests/a.txt": "limit 0\n"})
    world.git("checkout", "--quiet", "main")
    output = world.folder / "out"
    words = ("--head", "change", "--budget", "1s", "--output", str(output))
    code, said, _ = Commands(world).run("check", "scripted", *words)
    result: dict[str, Any] = json.loads((output / "result.json").read_text())
    assert (result["base"], result["head"]) == (made["r1"], head)
    assert (code, result["branch"]) == (0, R1), "the bug is old there"
    assert f"against {made['r1'][:12]} on {R1}: " in said


def test_workflow_and_script_check_changes_to_every_branch(world: World) -> None:
    world.commit("good")
    fuzz = Commands(world)
    assert fuzz.run("workflows", "scripted", "--bucket", "s3://fuzzing")[0] == 0
    text = (world.folder / ".github/workflows/fuzz-scripted-check.yml").read_text()
    read = yaml.load(text, Loader=yaml.BaseLoader)
    assert read["on"] == {"pull_request": {"branches": ["main", "release/*"]}}
    assert fuzz.run("workflows", "scripted", "--plain")[0] == 0
    script = (world.folder / "fuzz-scripted-check.sh").read_text()
    assert """${FUZZ_BASE:+--base "$FUZZ_BASE"}""" in script
    shell = shutil.which("sh")
    assert shell is not None
    assert subprocess.run([shell, "-n"], check=False, input=script, text=True).returncode == 0


def test_an_issue_is_closed_with_the_fix_of_each_branch() -> None:
    fixed = [
        OnBranch(name="main", state="fixed", fixed_in="f" * 40),
        OnBranch(name=R1, state="fixed", fixed_in="e" * 40),
        OnBranch(name="release/0", state="alive", watched=False),
    ]
    closed = a_finding(state="closed", closed_in="f" * 40, branches=fixed)
    note = note_of(closed, "toy")
    assert note.text.startswith(
        f"No longer seen since {'f' * 40} (`main`), no longer seen since {'e' * 40} (`{R1}`). "
    )
    assert [one["name"] for one in note.document["branches"]] == ["main", R1, "release/0"]
    why = "no longer watched: release/0"
    left = note_of(a_finding(state="closed", closed_why=why, branches=fixed[2:]), "toy").text
    assert "no longer watched: release/0" in left
    assert "fixed" not in left.lower(), "nobody saw a fix"

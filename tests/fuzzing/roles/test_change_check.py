"""`windlass fuzz check`: a change with a new bug is refused, an old bug is nobody's fault."""

import base64
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fuzzing.histories.planted import program
from tests.fuzzing.roles.test_fuzzer import findings_of, fuzz_until_bug
from tests.fuzzing.roles.test_run_health import REFUSES
from tests.fuzzing.support.actions_runner import filled
from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import BROKEN, BUILD, FINE, World
from tests.fuzzing.trackers.servers import a_finding
from tests.support.debian import missing_reason
from tests.support.running import run
from windlass_fuzz.findings.sarif import Place
from windlass_fuzz.roles.change_check import CheckedFinding, CheckReport, summary_page

OLD = "#!/bin/sh\ngrep -q 'other 3' $1 && { echo 'failed: old' >&2; kill -ABRT $$; }\nexit 0\n"
BOTH = OLD.replace("exit 0", BROKEN.partition("\n")[2])


def check(world: World, *words: str) -> tuple[int, dict[str, Any]]:
    output = world.folder / "out"
    budget = ("--budget", "1s", "--output", str(output))
    code, _, complained = Commands(world).run("check", "scripted", *budget, *words)
    assert (output / "result.json").exists(), complained
    return code, json.loads((output / "result.json").read_text())


def change(world: World, **files: str) -> str:
    """Makes a commit on a branch of its own, and leaves main where it was."""
    world.git("checkout", "--quiet", "-b", "change")
    commit = world.commit("change", **files)
    world.git("checkout", "--quiet", "main")
    return commit


def test_a_change_with_a_new_bug_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    base = world.commit("good")
    head = change(world, solver_sh=BROKEN, **{"tests/new.txt": "limit 0\n", "src.c": "int x;\n"})
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"]) == (1, "refused")
    assert (result["base"], result["head"]) == (base, head)
    (finding,) = result["findings"]
    assert (finding["age"], finding["base"]) == ("new", "runs it fine")
    output = tmp_path / "out"
    assert b"limit 0" in (output / finding["input"]).read_bytes()
    page = (output / "summary.md").read_text()
    assert "# scripted: the change introduces a bug" in page
    assert "windlass fuzz reproduce" not in page, "the bucket does not have it"
    assert f"run there:\n\n```sh\n./build/solver {Path(finding['input']).name}\n```" in page
    sarif = json.loads((output / "report.sarif").read_text())
    (result,) = sarif["runs"][0]["results"]
    assert (result["level"], result["ruleId"]) == ("error", "crash")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "src.c", "the changed code, as nothing says where"
    assert world.objects("findings") == [], "the bucket is not written to"


def test_a_bug_of_the_base_is_not_the_changes_fault(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("old", solver_sh=OLD)
    change(world, **{"notes.c": "x"})
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"]) == (0, "passed")
    assert [one["age"] for one in result["findings"]] == ["old"]


def test_a_base_that_fails_in_another_way_is_quoted(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("old", solver_sh=OLD)
    worse = OLD.replace("failed: old", "invalid <b>free</b>")
    change(world, solver_sh=worse, **{"src.c": "int x;\n"})
    code, result = check(world, "--head", "change")
    (finding,) = result["findings"]
    assert (code, finding["age"], finding["base"]) == (0, "old", "fails too")
    assert finding["base_title"] == "SIGABRT: failed: old"
    page = (tmp_path / "out/summary.md").read_text()
    assert "| fails too, as `SIGABRT: failed: old` |" in page


def test_a_check_that_fails_leaves_no_results_of_another(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("good")
    output = tmp_path / "out"
    output.mkdir()
    left = ("summary.md", "report.sarif", "result.json")
    for name in (*left, "mine.txt"):
        (output / name).write_text("of another check")
    words = ("check", "scripted", "--head", "nowhere", "--output", str(output))
    assert Commands(world).run(*words)[0] != 0
    assert [one.name for one in output.iterdir()] == ["mine.txt"]


def test_a_full_disk_is_named_without_a_traceback(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("good")
    (tmp_path / "fuzz-scripted-check.sh").symlink_to("/dev/full")
    code, _, complained = Commands(world).run("workflows", "scripted", "--plain")
    assert (code, complained) == (5, "windlass: cannot write: No space left on device\n")


def test_a_long_summary_ends_with_a_whole_report() -> None:
    found = [a_finding(f"{n:016}", output=f"{n}\n" * 8_000) for n in range(9)]
    checked = [
        CheckedFinding(key=one.key, title=one.title, kind=one.kind, age="new", base="runs it fine",
                       input="inputs/x", size=one.size)
        for one in found
    ]  # fmt: skip
    report = CheckReport(outcome="refused", base="b" * 40, head="c" * 40, findings=checked)
    places = {one.key: Place("a.c", 1) for one in found}
    page = summary_page(report, found, places, "toy")
    assert len(page) < 60_100
    assert page.count("```") % 2 == 0
    assert page.count("| new | crash |") == 9
    assert page.endswith("There is no room here for the reports of 6 more new findings.\n")


def test_a_change_that_fixes_a_known_finding_says_so_unless_it_is_private(tmp_path: Path) -> None:
    world = World(tmp_path)
    bad = world.commit("bad", solver_sh=BROKEN)
    run(world.build_and_schedule(bad))
    (key,) = run(fuzz_until_bug(world, bad)).findings
    change(world, solver_sh=FINE)
    code, result = check(world, "--head", "change")
    assert (code, result["findings"]) == (0, [])
    assert result["fixed"] == [{"key": key, "title": "SIGABRT: bad limit"}]
    assert f"runs the input of finding `{key}` fine" in (tmp_path / "out/summary.md").read_text()
    world.more = "issues: {project: a/b, private_project: a/c, private: [crash]}"
    assert check(world, "--head", "change")[1]["fixed"] == []


def test_a_change_that_adds_one_to_an_old_bug_is_refused_for_that_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("old", solver_sh=OLD)
    change(world, solver_sh=BOTH, **{"tests/new.txt": "limit 0\n"})
    code, result = check(world, "--head", "change")
    ages = {one["title"]: one["age"] for one in result["findings"]}
    assert (code, ages) == (1, {"SIGABRT: failed: old": "old", "SIGABRT: bad limit": "new"})


def test_known_inputs_run_first_and_a_fixed_bug_that_comes_back_ends_the_check(
    tmp_path: Path,
) -> None:
    """What breaks it is a word that no fuzzer guesses, and no test of the change has it."""
    world = World(tmp_path)
    secret = "the magic words are squeamish ossifrage"
    broken = f"#!/bin/sh\ngrep -q '{secret}' $1 && kill -SEGV $$\necho fine\n"
    bad = world.commit("bad", solver_sh=broken, **{"tests/b.txt": f"{secret}\n"})
    run(world.build_and_schedule(bad))
    run(world.fuzz(bad, budget_ms=1_000))
    (world.repository / "tests/b.txt").unlink()
    fixed = world.commit("fixed", solver_sh=FINE)
    run(world.build_and_schedule(fixed))
    assert run(world.fuzz(fixed, budget_ms=1_000)).closed
    (known,) = run(findings_of(world))
    head = change(world, solver_sh=broken)
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"], result["known"]) == (1, "refused", known.key)
    assert result["statistics"] is None, "nothing was fuzzed"
    (finding,) = result["findings"]
    assert (finding["age"], finding["base"], finding["size"]) == (
        "new", "runs it fine", known.size,
    )  # fmt: skip
    output = tmp_path / "out"
    assert secret in (output / finding["input"]).read_text(), "the reduced input"
    page = (output / "summary.md").read_text()
    assert "the change brings a fixed bug back" in page
    assert f"with the build of {head[:12]}" in page
    assert f"run there:\n\n```sh\n./build/solver {Path(finding['input']).name}\n```" in page


def test_a_fixed_bug_that_the_base_has_again_is_not_the_changes_fault(tmp_path: Path) -> None:
    world = World(tmp_path)
    bad = world.commit("bad", solver_sh=BROKEN)
    run(world.build_and_schedule(bad))
    run(fuzz_until_bug(world, bad))
    fixed = world.commit("fixed", solver_sh=FINE)
    run(world.build_and_schedule(fixed))
    assert run(world.fuzz(fixed, budget_ms=1_000)).closed
    world.commit("again", solver_sh=BROKEN)
    change(world, **{"notes.c": "x"})
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"], result["known"]) == (0, "passed", "")


def test_a_new_way_to_an_old_failure_is_new(tmp_path: Path) -> None:
    """Both end with the same message; the base runs the input of the new one fine."""
    world = World(tmp_path)
    world.commit("old", solver_sh=OLD)
    more = OLD.replace("other 3", "other [37]")
    change(world, solver_sh=more, **{"tests/new.txt": "limit 1, other 7\n"})
    code, result = check(world, "--head", "change")
    (finding,) = result["findings"]
    assert (code, finding["age"], finding["base"]) == (1, "new", "runs it fine")
    output = tmp_path / "out"
    shown = (output / finding["input"]).read_bytes()
    assert b"other 7" in shown
    assert finding["size"] == len(shown)
    page = (output / "summary.md").read_text()
    as_text = shown.decode(errors="replace").rstrip("\n")
    as_bytes = base64.b64encode(shown).decode()
    assert f"## Input\n\n```\n{as_text}\n```" in page or f"<<< {as_bytes} >" in page


def test_a_change_that_breaks_the_build_for_fuzzing_does_not_pass(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("good")
    change(world, solver_sh=REFUSES)
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"]) == (1, "unhealthy")


FAILS = "#!/bin/sh\necho 'x.c:1: error: ```<img src=x>' >&2\nexit 3\n"


def test_a_change_that_does_not_build_is_refused_and_the_summary_says_why(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("good")
    change(world, build_sh=FAILS)
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"]) == (1, "unhealthy")
    assert result["why"] == "it does not build: the production build exited with code 3"
    page = (tmp_path / "out/summary.md").read_text()
    assert "# scripted: the change could not be fuzzed: `it does not build: the production" in page
    assert "\n````\n" in page, "the fence is longer than what the build printed"
    assert "x.c:1: error:" in page
    assert json.loads((tmp_path / "out/report.sarif").read_text())["runs"][0]["results"] == []


def test_a_change_that_mends_the_build_passes_unless_it_shows_a_bug(tmp_path: Path) -> None:
    world = World(tmp_path)
    broken = world.commit("broken", build_sh=FAILS)
    change(world, build_sh=BUILD)
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"], result["base"]) == (0, "passed", broken)
    assert result["base_why"] == "the production build exited with code 3"
    world.git("checkout", "--quiet", "change")
    world.commit("bug", solver_sh=BROKEN, **{"tests/new.txt": "limit 0\n"})
    code, result = check(world, "--base", "main", "--head", "change")
    assert (code, result["outcome"]) == (1, "refused")
    (finding,) = result["findings"]
    assert (finding["age"], finding["base"]) == ("new", "cannot tell: it could not be built")
    page = (tmp_path / "out/summary.md").read_text()
    assert "The base cannot be built: `the production build exited with code 3`. So every" in page


COVERAGE = """#!/bin/sh
mkdir -p build
if [ "$1" = coverage ]; then flags=--coverage; fi
cc -g $flags -o build/solver toy.c
"""


def only(world: World, branch: str, *files: str) -> None:
    """Adds files on a branch of their own, and changes nothing else."""
    world.git("checkout", "--quiet", "-b", branch, "main")
    for name in files:
        path = world.repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text\n")
    world.git("add", "--all")
    world.git("commit", "--quiet", "--message", branch)


def test_a_change_of_documents_alone_passes_without_a_build(tmp_path: Path) -> None:
    world = World(tmp_path, more="seeds: {corpora: [fuzz/corpus]}")
    world.commit("cannot be built", build_sh="#!/bin/sh\nexit 1\n")
    only(world, "change", "README.md", "docs/picture.png")
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"], result["statistics"]) == (0, "passed", None)
    page = (tmp_path / "out/summary.md").read_text()
    assert "the change was not fuzzed, as it changes no file that builds" in page
    assert json.loads((tmp_path / "out/report.sarif").read_text())["runs"][0]["results"] == []
    for name, input_file in (("test", "tests/picture.png"), ("seed", "fuzz/corpus/picture.png")):
        only(world, name, input_file)
        assert check(world, "--head", name)[1]["outcome"] == "unhealthy", "a run reads it"


def test_without_a_bucket_the_check_finds_the_tests_that_reach_the_change(tmp_path: Path) -> None:
    """Pull requests of strangers see no bucket, and so no coverage map."""
    world = World(tmp_path)
    two = "static int one(void) { return 1; }\nstatic int two(void) { return 2; }\n"
    calls = '  if (has("ONE")) one();\n  if (has("TWO")) two();'
    tests = {"tests/a.txt": "ONE", "tests/b.txt": "TWO", "tests/c.txt": "NONE"}
    world.commit("good", build_sh=COVERAGE, **{"toy.c": program(calls, two), **tests})
    change(world, **{"toy.c": program(calls, two.replace("return 2", "return 3"))})
    fuzz = Commands(world, WINDLASS_FUZZ_BUCKET=str(tmp_path / "none"))
    file = tmp_path / "scripted.yaml"
    file.write_text(file.read_text().replace("health: {coverage: false}", ""))
    words = ("check", "scripted", "--head", "change", "--budget", "1s", "--output", "out")
    assert fuzz.run(*words)[0] == 0
    result = json.loads((tmp_path / "out/result.json").read_text())
    assert (result["tests"], result["chosen_by"]) == (1, "1 of 3 reach the changes")
    assert not (tmp_path / "none").exists()


def test_a_bucket_that_does_not_answer_is_asked_once_and_stops_no_check(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("good")
    change(world, **{"src.c": "int x;\n"})
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
    away = {"WINDLASS_FUZZ_BUCKET": "s3://bucket", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    words = ("check", "scripted", "--head", "change", "--budget", "1s")
    code, _, complained = Commands(world, **keys, **away).run(*words)
    assert (code, complained.count("cannot use ")) == (0, 1), complained


def test_a_detached_head_is_checked_as_ci_checks_it_out(tmp_path: Path) -> None:
    world = World(tmp_path)
    base = world.commit("good")
    world.git("checkout", "--quiet", "--detach")
    head = world.commit("nowhere", solver_sh=BROKEN, **{"tests/new.txt": "limit 0\n"})
    code, result = check(world)
    assert (code, result["base"], result["head"]) == (1, base, head)


def test_github_checks_a_merge_against_what_it_was_merged_into(tmp_path: Path) -> None:
    """The branch got a bug after the change left it: the change is not blamed for that."""
    world = World(tmp_path)
    world.commit("good")
    change(world, **{"notes.c": "x"})
    base = world.commit("old", solver_sh=OLD)
    world.git("checkout", "--quiet", "--detach")
    world.git("merge", "--quiet", "--no-ff", "-X", "ours", "--message", "merge", "change")
    values = {"github.sha": world.git("rev-parse", "HEAD")}
    code, _, complained = Commands(world).run("workflows", "scripted", "--check")
    assert (code, "which runners do not have" in " ".join(complained.split())) == (0, True)
    text = (tmp_path / ".github/workflows/fuzz-scripted-check.yml").read_text()
    steps = yaml.load(text, Loader=yaml.BaseLoader)["jobs"]["check"]["steps"]
    (given,) = [step["env"] for step in steps if step.get("id") == "check"]
    assert steps[0]["with"]["persist-credentials"] == "false", "a build may read the checkout"
    commits = {name: filled(value, values) for name, value in given.items()}
    code, result = check(world, "--base", commits["BASE"], "--head", commits["HEAD"])
    assert (code, result["base"], result["head"]) == (0, base, values["github.sha"])
    assert [one["age"] for one in result["findings"]] == ["old"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", "1s", "--head", "no-such-branch"), "no-such-branch"),
        (("--budget", "1s", "--head=--upload-pack=touch hacked"), "a commit or a branch"),
        (("--budget", "1s", "--head", "main"), "a commit after the base"),
        (("--budget", "0s"), "expected --budget to be more than 0"),
    ],
)
def test_what_cannot_be_checked_is_named(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    world = World(tmp_path)
    world.commit("good")
    code, _, complained = Commands(world).run("check", "scripted", *words)
    assert (code != 0, said in " ".join(complained.split())) == (True, True), complained
    assert not list(tmp_path.rglob("hacked"))


def test_the_workflow_of_the_check_has_no_secrets_and_quotes_what_strangers_choose(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.commit("good")
    fuzz = Commands(world)
    code, _, complained = fuzz.run("workflows", "scripted")
    assert (code, "--check needs no bucket" in " ".join(complained.split())) == (2, True)
    assert fuzz.run("workflows", "scripted", "--check")[0] == 0
    (file,) = (tmp_path / ".github/workflows").iterdir()
    text = file.read_text()
    assert fuzz.run("workflows", "scripted", "--bucket", "s3://fuzzing")[0] == 0
    assert file.read_text() == text, "as among the files of the whole pipeline"
    assert "secrets." not in text
    read = yaml.load(text, Loader=yaml.BaseLoader)
    assert read["on"] == {"pull_request": {"branches": ["main"]}}
    assert read["permissions"] == {
        "contents": "read", "actions": "read", "security-events": "write",
    }  # fmt: skip
    runs = [step["run"] for step in read["jobs"]["check"]["steps"] if "run" in step]
    assert not any("${{" in line for line in runs)
    assert any('--base "$BASE" --head "$HEAD"' in line for line in runs)


def test_the_plain_script_refuses_a_change_in_any_ci(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("good")
    change(world, solver_sh=BROKEN, **{"tests/new.txt": "limit 0\n"})
    world.git("checkout", "--quiet", "change")
    fuzz = Commands(world)
    assert fuzz.run("workflows", "scripted", "--plain")[0] == 0
    script = tmp_path / "fuzz-scripted-check.sh"
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, line in (
        ("python3", "exit 1"),  # to install what is installed already
        ("windlass", f'exec {sys.executable} -m windlass "$@"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    env = fuzz.env | {"PATH": f"{programs}:{fuzz.env['PATH']}", "FUZZ_BUDGET": "1s"}
    done = subprocess.run([str(script)], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "fuzz-check/summary.md").exists()


def test_a_finding_is_reproduced_and_packed(tmp_path: Path) -> None:
    world = World(tmp_path)
    bad = world.commit("bad", solver_sh=BROKEN)
    fixed = world.commit("fixed", solver_sh=FINE)
    run(world.build_and_schedule(bad, fixed))
    (key,) = run(fuzz_until_bug(world, bad)).findings
    fuzz = Commands(world)
    code, said, _ = fuzz.run("reproduce", "scripted", key)
    assert (code, f"{bad} shows SIGABRT" in said) == (0, True)
    assert fuzz.run("reproduce", "scripted", key, "--commit", fixed[:12])[0] == 1
    code, said, _ = fuzz.run("reproduce", "scripted", key, "--commit", "HEAD")
    assert (code, said) == (
        1,
        "fine\n\nHEAD does not show SIGABRT: bad limit: it runs the input fine\n",
    )
    archive = tmp_path / "finding.tar.gz"
    assert fuzz.run("reproduce", "scripted", key, "--archive", str(archive))[0] == 0
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "sent", filter="data")
    (top,) = (tmp_path / "sent").iterdir()
    done = subprocess.run([str(top / "run.sh")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-6, "bad limit\n"), "it needs nothing else"
    page = (top / "report.md").read_text()
    assert "SIGABRT: bad limit" in page
    assert "./run.sh --gdb" in page
    assert "windlass fuzz" not in page, "a colleague has none"
    assert f"build of {bad};" in (top / "run.sh").read_text()
    words = ("reproduce", "scripted", key, "--archive", str(archive), "--commit", "HEAD")
    assert fuzz.run(*words)[0] == 0
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "later", filter="data")
    assert f"build of {fixed};" in (tmp_path / "later" / top.name / "run.sh").read_text()


def in_terminal(world: World, *words: str) -> str:
    """Runs a command with a terminal as its input, lists a function, and returns the output."""
    mine, theirs = os.openpty()
    os.write(mine, b"list stop\nkill\ny\nquit\n")
    done = subprocess.run(
        [sys.executable, "-m", "windlass", "fuzz", *words], cwd=world.folder,
        env=Commands(world).env, stdin=theirs, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    os.close(mine)
    os.close(theirs)
    return done.stdout


@pytest.mark.skipif(missing_reason("gdb") is not None, reason=missing_reason("gdb") or "")
def test_a_finding_is_shown_in_the_debugger(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    source = program('  if (has("X")) stop();', "static void stop(void) { abort(); }")
    build = "#!/bin/sh\nmkdir -p build && cc -g -O0 -o build/solver toy.c\n"
    bad = world.commit("bad", build_sh=build, **{"toy.c": source, "tests/x.txt": "X"})
    run(world.build_and_schedule(bad))
    (key,) = run(fuzz_until_bug(world, bad)).findings
    process = Commands(world).start("reproduce", "scripted", key, "--gdb")
    said, _ = process.communicate(timeout=60)
    assert "SIGABRT" in said
    assert re.search(r"#\d+ .* in stop", said), said
    # Another commit was built in the same place since; the lines must be those of the finding.
    later = world.commit("later", **{"toy.c": source.replace("void stop", "void  stop")})
    run(world.build_and_schedule(later))
    shown = in_terminal(world, "reproduce", "scripted", key, "--gdb")
    assert "static void stop(void) { abort(); }" in shown, shown


OVERFLOW = program(
    '  if (has("X")) spill(4);',
    """static void spill(int at) {
  char *room = malloc(4);
  room[at] = 1;
  free(room);
}""",
)
SANITIZED = """
matrix:
  sanitizers:
    - {name: address, env: {FLAGS: '-fsanitize=address', ASAN_OPTIONS: 'quarantine_size_mb=1'},
       options: {sanitizer: true}}
"""
WITH_FLAGS = "#!/bin/sh\nmkdir -p build && cc -g -O0 $FLAGS -o build/solver toy.c\n"


@pytest.mark.skipif(missing_reason("gdb") is not None, reason=missing_reason("gdb") or "")
def test_a_sanitizer_stops_in_the_debugger_with_the_options_of_the_file(tmp_path: Path) -> None:
    world = World(tmp_path, more=SANITIZED)
    bad = world.commit("bad", build_sh=WITH_FLAGS, **{"toy.c": OVERFLOW, "tests/x.txt": "X"})
    run(world.build_and_schedule(bad))
    (key,) = run(fuzz_until_bug(world, bad)).findings
    fuzz = Commands(world)
    said, _ = fuzz.start("reproduce", "scripted", key, "--gdb").communicate(timeout=60)
    assert re.search(r"#\d+ .* in spill", said), said
    archive = tmp_path / "finding.tar.gz"
    assert fuzz.run("reproduce", "scripted", key, "--archive", str(archive))[0] == 0
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "sent", filter="data")
    (script,) = (tmp_path / "sent").rglob("run.sh")
    assert "export ASAN_OPTIONS=quarantine_size_mb=1\n" in script.read_text()
    done = subprocess.run([script], capture_output=True, text=True, check=False)
    assert (done.returncode, "heap-buffer-overflow" in done.stderr) == (1, True)
    words = [str(script), "--gdb"]
    done = subprocess.run(
        words, input="backtrace\nlist spill\nkill\n", capture_output=True, text=True, check=False,
        env=os.environ | {"SOURCES": str(world.repository)},
    )  # fmt: skip
    assert re.search(r"#\d+ .* in spill", done.stdout), done.stdout
    assert "char *room = malloc(4);" in done.stdout, done.stdout

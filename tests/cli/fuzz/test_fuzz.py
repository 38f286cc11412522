"""`windlass fuzz` as people and programs use it: output, exit codes, files, a real fleet."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.program import MAX_S, Program, run_here
from tests.fuzzing.support.fault_proxy import fault_proxy
from tests.fuzzing.support.github_server import PROJECT, github_server
from tests.fuzzing.support.repository import Repository
from tests.support.s3 import S3Server

DESCRIPTION = {
    "name": "toy",
    "repository": "repository",
    "build": {"production": ["./build.sh"], "coverage": ["./build.sh"]},
    "binaries": ["toy"],
    "engine": {"name": "command", "argv": ["{binaries}/toy", "{input}"]},
}


class Fuzz:
    """A solver file, its repository and its bucket in one folder."""

    def __init__(self, folder: Path, program: Program) -> None:
        self.folder = folder
        self.program = program
        self.repository = Repository(folder / "repository")
        self.file = folder / "toy.yaml"
        self.describe()
        self.places = {
            "WINDLASS_FUZZ_BUCKET": str(folder / "bucket"),
            "WINDLASS_FUZZ_WORK": str(folder / "work"),
        }

    def describe(self, **changes: Any) -> None:
        self.file.write_text(yaml.safe_dump(DESCRIPTION | changes))

    def __call__(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = self.program.environment | self.places | variables
        return run_here(("fuzz", *words), environment, self.folder)

    async def beside(self, *words: str, **variables: str) -> tuple[int, str]:
        """Runs a command while this loop runs a server; returns exit code and output."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "windlass", "fuzz", *words, cwd=self.folder,
            env=self.program.environment | self.places | variables,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said, _ = await asyncio.wait_for(process.communicate(), MAX_S)
        assert process.returncode is not None
        return process.returncode, said.decode()

    def json(self, *words: str) -> Any:
        done = self(*words, "--json")
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def refused(self, *words: str) -> tuple[int, str]:
        done = self(*words)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stderr

    def state(self, name: str) -> Any:
        path = self.folder / "bucket" / "solvers" / "toy" / "fuzzing-state" / name
        return json.loads(path.read_bytes())


@pytest.fixture
def fuzz(tmp_path: Path) -> Fuzz:
    return Fuzz(tmp_path, Program(tmp_path / "data"))


def test_single_steps_tell_commit_and_token(fuzz: Fuzz) -> None:
    commit = fuzz.repository.commit("a.cpp")
    assert fuzz.json("manager", "toy")["queued"] == [commit]
    output = fuzz.folder / "output"
    taken = fuzz("builder", "next", "toy", GITHUB_OUTPUT=str(output))
    assert taken.stdout.strip() == commit
    outputs = dict(line.split("=") for line in output.read_text().splitlines())
    assert outputs["commit"] == commit
    assert fuzz.json("builder", "next", "toy") == {"commit": None}
    code, said = fuzz.refused("builder", "mark-failed", "toy", commit, "--token", "wrong")
    assert code == 5
    assert "nothing was changed" in said
    words = ("builder", "mark-failed", "toy", commit, "--token", outputs["token"])
    assert fuzz.json(*words) == {"applied": True}
    assert fuzz.state("build-queue.json")["failed"] == [commit]
    assert commit[:12] in fuzz("status", "toy").stdout, "as much of it as commands ask for"
    assert fuzz.json("queue", "retry", "toy", commit[:12]) == {"applied": True}
    assert fuzz.state("build-queue.json")["queue"] == [commit]
    assert fuzz.json("queue", "remove", "toy", commit[:12]) == {"applied": True}


def test_beginnings_that_several_commits_share_are_refused() -> None:
    from windlass.domain.values.errors import InvalidInput
    from windlass_fuzz.cli.steps import unique_match

    known = ["ab12", "ab34", "cd56"]
    assert (unique_match(known, "c", "commit"), unique_match(known, "e", "commit")) == (
        "cd56",
        None,
    )
    with pytest.raises(InvalidInput, match="2 match"):
        unique_match(known, "ab", "commit")


def test_a_dry_run_changes_nothing(fuzz: Fuzz) -> None:
    fuzz.repository.commit("a.cpp")
    done = fuzz("manager", "toy", "--dry-run")
    assert "would: queue" in done.stdout
    assert not (fuzz.folder / "bucket").exists()


def test_what_is_wrong_is_said_and_nothing_changes(fuzz: Fuzz) -> None:
    fuzz.repository.commit("a.cpp")
    fuzz.json("manager", "toy")
    before = fuzz.state("build-queue.json")
    for words, code, expected in (
        (("manager", "unknown"), 2, "solver"),
        (("manager", "toy", "--bucket", "ftp://x"), 2, "s3://"),
        (("manager", "toy", "--commit", "e" * 40), 4, "commit"),
        (("queue", "add", "toy", "../x"), 2, "a commit hash"),
        (("queue", "retry", "toy", "e" * 40), 4, "failed commit"),
        (("builder", "next", "toy", "--commit", "e" * 40), 4, "commit"),
        (("workflows", "toy"), 2, "s3://"),
        (("install", "toy"), 3, "windlass up"),
    ):
        got, said = fuzz.refused(*words)
        assert (got, expected in said) == (code, True), (words, got, said)
    assert fuzz.state("build-queue.json") == before


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "a/b"}, "name"),
        ({"brunch": "main"}, "brunch"),
        ({"binaries": []}, "binaries"),
        ({"engine": {}}, "engine.name"),
        ({"budget": "soon"}, "budget"),
        ({"budget": "0s"}, "budget"),
        ({"build": {"production": [], "coverage": ["x"]}}, "build.production"),
        ({"commits": {"extensions": ["cpp"]}}, "commits.extensions"),
        ({"commits": {"fresh": 0}}, "commits.fresh"),
        ({"roles": {"manager": {"cron": "61 * * * *"}}}, "roles.manager.cron"),
        ({"roles": {"builder": {"requires": ["much"]}}}, "roles.builder.requires"),
        ({"roles": {"cook": {}}}, "cook"),
        ({"branch": "--upload-pack=x"}, "branch"),
    ],
)
def test_a_mistake_in_the_file_is_named_by_its_field(
    tmp_path: Path, changes: dict[str, Any], field: str
) -> None:
    from windlass.domain.values.errors import InvalidInput
    from windlass_fuzz.config.solver_file import load_solver

    file = tmp_path / "toy.yaml"
    file.write_text(yaml.safe_dump(DESCRIPTION | changes))
    with pytest.raises(InvalidInput) as refused:
        load_solver(file)
    assert field in str(refused.value)


def test_a_file_may_be_toml(tmp_path: Path) -> None:
    from windlass_fuzz.config.solver_file import load_solver

    file = tmp_path / "toy.toml"
    file.write_text(
        'name = "toy"\nrepository = "x"\nbinaries = ["toy"]\n'
        '[build]\nproduction = ["a"]\ncoverage = ["b"]\n[engine]\nname = "command"\n'
    )
    solver = load_solver(file)
    assert solver.role_settings("fuzzer").cron == "45 0,6,12,18 * * *"
    assert solver.budget_ms == 6 * 3_600_000, "six hours, unless the file says otherwise"


def test_a_hand_edited_file_is_kept_aside_and_named(fuzz: Fuzz) -> None:
    fuzz.repository.commit("a.cpp")
    fuzz.json("manager", "toy")
    file = fuzz.folder / "bucket/solvers/toy/fuzzing-state/build-queue.json"
    file.write_text('{"queue": [')
    code, said = fuzz.refused("builder", "next", "toy")
    assert code == 5
    assert "solvers/toy/fuzzing-state/build-queue.json" in said
    assert file.read_text() == '{"queue": ['
    (kept,) = (file.parent / "kept-aside").iterdir()
    assert kept.read_text() == '{"queue": ['
    file.unlink()
    assert fuzz("builder", "next", "toy").returncode == 0


def test_status_is_a_picture(fuzz: Fuzz) -> None:
    first = fuzz.repository.commit("a.cpp")
    second = fuzz.repository.commit("b.cpp")
    fuzz.json("manager", "toy")
    fuzz.json("builder", "next", "toy")
    shown = fuzz("status", "toy").stdout
    assert "queue 2 ─┬─► built 0 ──► schedule 0 ──► findings 0 open, 0 closed" in shown
    assert f"queue     {first[:12]}  being built by" in shown
    assert f"          {second[:12]}" in shown.splitlines()
    shown = fuzz.json("status", "toy")
    assert shown["queue"] == [first, second]
    assert [one["commit"] for one in shown["at_work"]] == [first]


def test_a_manager_may_ask_github_and_needs_no_clone(fuzz: Fuzz) -> None:
    commit = fuzz.repository.commit("a.cpp")

    async def work() -> tuple[int, str]:
        async with github_server(fuzz.repository) as server:
            source = {"source": "github", "api": server.address, "project": PROJECT}
            fuzz.describe(commits=source, repository="https://example.org/nowhere")
            ended = await fuzz.beside("manager", "toy", GITHUB_TOKEN="made-here")
            assert set(server.tokens) == {"Bearer made-here"}
            return ended

    code, said = asyncio.run(work())
    assert (code, commit[:12] in said) == (0, True), said
    assert fuzz.state("build-queue.json")["queue"] == [commit]


def test_a_bucket_of_s3_from_its_beginning_to_spent_retries(
    fuzz: Fuzz, s3_server: S3Server
) -> None:
    commit = fuzz.repository.commit("a.cpp")
    fuzz.describe(bucket="s3://fuzz-cli/below")
    fuzz.places = {"WINDLASS_FUZZ_WORK": str(fuzz.folder / "work")} | s3_server.environment()
    assert fuzz.json("init", "toy")["rule_set"]
    assert fuzz.json("init", "toy")["rule_set"] is False
    assert fuzz.json("manager", "toy")["queued"] == [commit]

    async def remove() -> tuple[int, str]:
        async with fault_proxy(s3_server.endpoint) as proxy:
            # Four writes of the probe pass; the step's own are refused each time.
            proxy.script = ["pass"] * 4 + [409] * 9
            return await fuzz.beside(
                "queue", "remove", "toy", commit, AWS_ENDPOINT_URL=proxy.address
            )

    code, said = asyncio.run(remove())
    assert code == 5, said
    assert "nothing was changed" in said
    assert "Traceback" not in said
    assert fuzz.json("status", "toy")["queue"] == [commit]
    assert fuzz.json("queue", "remove", "toy", commit) == {"applied": True}


def test_workflow_files_are_valid_and_keep_the_described_names(fuzz: Fuzz) -> None:
    made = fuzz.json("workflows", "toy", "--bucket", "s3://fuzzing/below")
    files = [fuzz.folder / name for name in made]
    program = Path(sys.executable).with_name("check-jsonschema")
    schema = "vendor.github-workflows"
    checked = subprocess.run(
        [program, "--builtin-schema", schema, *files],
        capture_output=True, text=True, timeout=MAX_S, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout
    read = [yaml.load(file.read_text(), Loader=yaml.BaseLoader) for file in files]
    pulls = [one for one in read if "pull_request" in one["on"]]
    read = [one for one in read if one not in pulls]
    assert [set(one["on"]) for one in pulls] == [{"pull_request"}]
    assert "secrets." not in str(pulls)  # the code of strangers runs there
    crons = [one["on"]["schedule"][0]["cron"] for one in read]
    assert crons == ["*/15 * * * *", "5,35 * * * *", "45 0,6,12,18 * * *", "0 0 1 * *"]
    for one in read:
        assert one["on"]["workflow_dispatch"]["inputs"]["commit"]["required"] == "false"
        for job in one["jobs"].values():
            assert int(job["timeout-minutes"]) > 0
    builder, fuzzer = read[1]["jobs"], read[2]["jobs"]
    assert {"mark-as-built", "mark-as-failed"} <= set(builder)
    assert "update-fuzz-count" in fuzzer
    assert "fuzz builder next toy.yaml" in builder["next"]["steps"][-1]["run"]
    # What a person types goes through a variable, never into a command.
    assert not any("inputs.commit" in step.get("run", "") for one in read
                   for job in one["jobs"].values() for step in job["steps"])  # fmt: skip


def test_the_pipeline_runs_on_a_fleet(up: Program, tmp_path: Path) -> None:
    fuzz = Fuzz(tmp_path, up)
    script = fuzz.repository.folder / "build.sh"
    script.write_text("#!/bin/sh\ntouch toy\n")
    script.chmod(0o755)
    commit = fuzz.repository.commit("a.cpp")
    fuzz.describe(budget="2h", roles={"fuzzer": {"requires": ["cpus>=1000"], "queue": "default"}})
    program = str(Path(sys.executable).with_name("windlass"))
    words = ("install", "toy", "--work", str(tmp_path / "work"), "--program", program)
    made = {put["schedule"]["name"]: put["schedule"] for put in fuzz.json(*words)}
    assert {name: schedule["cron"] for name, schedule in made.items()} == {
        "fuzz-toy-manager": "*/15 * * * *",
        "fuzz-toy-builder": "5,35 * * * *",
        "fuzz-toy-fuzzer": "45 0,6,12,18 * * *",
        "fuzz-toy-triage": "*/5 * * * *",
        "fuzz-toy-coverage": "0 0 1 * *",
    }
    jobs = {name: schedule["jobs"][0] for name, schedule in made.items()}
    assert jobs["fuzz-toy-fuzzer"]["requires"] == ["cpus>=1000"]
    assert jobs["fuzz-toy-builder"]["requires"] == ["git:available==true"]
    assert jobs["fuzz-toy-fuzzer"]["timeout"] == 2.5 * 3600
    assert jobs["fuzz-toy-builder"]["timeout"] == 2.5 * 3600

    for role in ("manager", "builder"):
        run = up.json("schedules", "run", f"fuzz-toy-{role}")
        watched = up("workflow", "watch", str(run["workflow"]))
        assert watched.returncode == 0, (run, watched.stdout, watched.stderr)
    assert fuzz.state("build-queue.json")["built"] == [commit]
    assert fuzz("install", "toy", "--remove").returncode == 0
    names = {schedule["name"] for schedule in up.json("schedules", "list")}
    assert not names & set(made)

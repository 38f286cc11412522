"""The GitHub Actions workflows: runs every `run:` of them, job after job."""

import itertools
from pathlib import Path

import pytest
import yaml

from tests.fuzzing.support.actions_runner import Runner
from tests.fuzzing.support.repository import Repository
from tests.fuzzing.support.scripted_solver import World
from tests.support.s3 import S3Server
from windlass_fuzz.config.github_workflows import workflows_of
from windlass_fuzz.config.solver_file import parse_solver

BUILD = """#!/bin/sh
[ -e broken ] && [ "$1" = coverage ] && exit 1
printf '#!/bin/sh\\nread line < "$1"; exit 0\\n' > toy && chmod +x toy
"""
# The file lies in the solver's own repository, which the runner checks out.
DESCRIPTION = """
name: toy
repository: .
build: {production: [./build.sh, production], coverage: [./build.sh, coverage]}
binaries: [toy]
tests: ['tests/*']
engine: {name: command, argv: ['{binaries}/toy', '{input}']}
issues: {project: owner/toy}
budget: 2s
roles:
  manager: {env: {AWS_ENDPOINT_URL: 'AT'}}
  builder:
    env: {AWS_ENDPOINT_URL: 'AT'}
    setup: ['sudo apt-get install -y cmake']
    secrets: [LICENCE]
  fuzzer: {env: {AWS_ENDPOINT_URL: 'AT'}}
  coverage: {env: {AWS_ENDPOINT_URL: 'AT'}}
"""
BUILT = {
    "next": "success", "build-production": "success", "build-coverage": "success",
    "mark-as-built": "success", "mark-as-failed": "skipped",
}  # fmt: skip
FUZZED = {
    "select": "success", "fuzz": "success", "update-fuzz-count": "success",
    "give-back": "skipped",
}  # fmt: skip


_numbers = itertools.count(1)


class Project:
    """A repository on GitHub, with the workflow files of its solver."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        self.repository = Repository(folder / "repository")
        top = self.repository.folder
        (top / "build.sh").write_text(BUILD)
        (top / "build.sh").chmod(0o755)
        (top / "toy.yaml").write_text(DESCRIPTION.replace("'AT'", server.endpoint))
        self.good = self.repository.commit("a.cpp", "tests/one")
        self.broken = self.repository.commit("b.cpp", "broken")
        self.runner = Runner(folder, top, server, f"s3://workflow-files-{next(_numbers)}")
        self.runner.windlass("workflows", "toy", "--bucket", self.runner.bucket)

    def play(self, role: str, commit: str = "") -> dict[str, str]:
        return self.runner.play(f".github/workflows/fuzz-toy-{role}.yml", commit)


@pytest.fixture
def project(tmp_path: Path, s3_server: S3Server) -> Project:
    return Project(tmp_path, s3_server)


def test_the_commands_of_the_files_carry_a_commit_through_the_pipeline(project: Project) -> None:
    assert project.play("manager") == {"manager": "success"}
    assert project.play("builder") == BUILT
    assert project.play("builder") == BUILT | {
        "build-coverage": "failure", "mark-as-built": "skipped", "mark-as-failed": "success",
    }  # fmt: skip
    assert set(project.play("builder").values()) == {"success", "skipped"}  # nothing waits
    project.play("manager")
    project.runner.break_next("fuzz", "false")
    assert project.play("fuzzer") == FUZZED | {
        "fuzz": "failure", "update-fuzz-count": "skipped", "give-back": "success",
    }  # fmt: skip
    assert project.play("fuzzer") == FUZZED
    shown = project.runner.status()
    assert [(e["hash"], e["fuzz_count"]) for e in shown["schedule"]] == [(project.good, 1)]
    assert (shown["failed"], shown["queue"], shown["built"]) == ([project.broken], [], [])
    assert shown["at_work"] == []


def test_a_commit_may_be_given_by_hand_to_each_role(project: Project) -> None:
    plain = project.repository.commit("README.md")
    project.repository.git("rm", "--quiet", "broken")
    mended = project.repository.commit("NEWS.md")
    assert project.play("manager", plain[:10]) == {"manager": "success"}
    assert project.runner.status()["queue"] == [
        plain
    ]  # no C++ in it, and nothing else is looked at
    assert project.play("builder", mended) == BUILT
    assert project.runner.status()["built"] == [mended]
    assert project.play("fuzzer", mended) == FUZZED
    counts = {e["hash"]: e["fuzz_count"] for e in project.runner.status()["schedule"]}
    assert counts == {mended: 1}
    # A commit that cannot be is named in the log, and nothing happens to the state.
    assert project.play("manager", "0123456789") == {"manager": "failure"}
    assert project.play("coverage", "$(touch hacked)") == {"coverage": "failure"}
    assert not list(project.runner.folder.rglob("hacked"))


def test_runners_are_prepared_as_the_solvers_file_says(project: Project) -> None:
    read = {
        role: yaml.load(
            (project.repository.folder / f".github/workflows/fuzz-toy-{role}.yml").read_text(),
            Loader=yaml.BaseLoader,
        )
        for role in ("manager", "builder", "fuzzer", "coverage")
    }
    builder, fuzzer = read["builder"], read["fuzzer"]
    assert builder["env"]["LICENCE"] == "${{ secrets.LICENCE }}"
    assert builder["env"]["WINDLASS_FUZZ_PASS_ENV"] == "LICENCE"  # builds get it, whatever its name
    assert "LICENCE" not in fuzzer["env"]
    assert fuzzer["permissions"] == {"contents": "read", "issues": "write"}
    assert builder["permissions"] == {"contents": "read"}
    lines = {name: [s.get("run") for s in job["steps"]] for name, job in builder["jobs"].items()}
    assert "sudo apt-get install -y cmake" in lines["build-coverage"]
    assert "sudo apt-get install -y cmake" not in lines["next"]
    text = "".join(p.read_text() for p in project.repository.folder.glob(".github/workflows/*"))
    assert "&id" not in text, "GitHub read no anchors for years"
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_a_run_may_write_issues_only_if_they_are_filed_at_github(tmp_path: Path) -> None:
    text = World(tmp_path, more="issues: {tracker: gitlab, project: group/toy}").description
    files = workflows_of(parse_solver(text.encode(), Path("s.yaml")), "s3://bucket", "s.yaml")
    assert files
    assert not any("issues: write" in content for content in files.values())

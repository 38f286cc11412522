"""The workflow files for GitHub Actions, played: their own commands, in the order of their jobs."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.program import LONGEST_S, Program
from tests.fuzzing.repository import Repository
from tests.support.s3 import S3Server

BUILD = """#!/bin/sh
[ -e broken ] && exit 1
printf '#!/bin/sh\\nread line < "$1"; exit 0\\n' > toy && chmod +x toy
"""
DESCRIPTION = """
name: toy
repository: repository
build: {production: [./build.sh, production], coverage: [./build.sh, coverage]}
binaries: [toy]
tests: ['tests/*']
engine: {name: command, argv: ['{binaries}/toy', '{input}']}
budget: 3s
"""
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


class Runner:
    """Plays the jobs of a workflow file one after another, without what others provide."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        self.folder = folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        self.environment = Program(folder / "data").environment | server.environment()
        self.environment |= {"PATH": path, "WINDLASS_FUZZ_WORK": str(folder / "work")}

    def windlass(self, *words: str) -> str:
        return subprocess.run(
            ["windlass", "fuzz", *words], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, timeout=LONGEST_S, check=True,
        ).stdout  # fmt: skip

    def play(self, role: str, commit: str = "") -> dict[str, str]:
        """Run a file; how each of its jobs ended."""
        text = (self.folder / f".github/workflows/fuzz-toy-{role}.yml").read_text()
        workflow = yaml.load(text, Loader=yaml.BaseLoader)
        values = {"inputs.commit": commit}
        results: dict[str, str] = {}
        for name, job in workflow["jobs"].items():
            results[name] = self._job(name, job, workflow["env"], values, results)
            values[f"needs.{name}.result"] = results[name]
        return results

    def _job(
        self, name: str, job: Any, env: Any, values: dict[str, str], results: dict[str, str]
    ) -> str:
        condition = EXPRESSION.sub(r"\1", job.get("if", ""))
        needed = [results[need] for need in job.get("needs", [])]
        if not condition.startswith("always()") and set(needed) - {"success"}:
            return "skipped"
        if condition and not _holds(condition, values):
            return "skipped"
        output = self.folder / "output"
        output.write_text("")
        step = job["steps"][-1]
        given = {n: EXPRESSION.sub(lambda m: values[m[1]], v) for n, v in step["env"].items()}
        bucket = {"WINDLASS_FUZZ_BUCKET": env["WINDLASS_FUZZ_BUCKET"]}
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]], cwd=self.folder, timeout=LONGEST_S, check=False,
            env=self.environment | bucket | given | {"GITHUB_OUTPUT": str(output)},
        )  # fmt: skip
        told = dict(line.split("=", 1) for line in output.read_text().splitlines())
        for wanted in job.get("outputs", {}):
            values[f"needs.{name}.outputs.{wanted}"] = told[wanted]
        return "success" if done.returncode == 0 else "failure"


def _holds(condition: str, values: dict[str, str]) -> bool:
    """Conditions as they are written there: comparisons, joined by || or by &&."""
    plain = condition.removeprefix("always() && ").strip("()")
    found = []
    for comparison in plain.split(" || "):
        left, sign, right = comparison.split(" ")
        equal = values.get(left, "") == right.strip("'")
        found.append(equal if sign == "==" else not equal)
    return any(found)


@pytest.fixture
def runner(tmp_path: Path, s3_server: S3Server) -> Runner:
    repository = Repository(tmp_path / "repository")
    (repository.folder / "build.sh").write_text(BUILD)
    (repository.folder / "build.sh").chmod(0o755)
    repository.commit("a.cpp", "tests/one")
    repository.commit("b.cpp", "broken")
    (tmp_path / "toy.yaml").write_text(DESCRIPTION)
    made = Runner(tmp_path, s3_server)
    made.windlass("workflows", "toy", "--bucket", "s3://workflow-files")
    return made


def test_the_commands_of_the_files_carry_a_commit_through_the_pipeline(runner: Runner) -> None:
    assert runner.play("manager") == {"manager": "success"}
    assert runner.play("builder") == {
        "next": "success", "build-production": "success", "build-coverage": "success",
        "mark-as-built": "success", "mark-as-failed": "skipped",
    }  # fmt: skip
    assert runner.play("builder") == {
        "next": "success", "build-production": "failure", "build-coverage": "failure",
        "mark-as-built": "skipped", "mark-as-failed": "success",
    }  # fmt: skip
    assert set(runner.play("builder").values()) == {"success", "skipped"}  # nothing waits
    runner.play("manager")
    assert runner.play("fuzzer") == {
        "select": "success", "fuzz": "success", "update-fuzz-count": "success",
        "give-back": "skipped",
    }  # fmt: skip
    shown = yaml.safe_load(
        runner.windlass("status", "toy", "--bucket", "s3://workflow-files", "--json")
    )
    assert [entry["fuzz_count"] for entry in shown["schedule"]] == [1]
    assert (len(shown["failed"]), shown["queue"], shown["built"]) == (1, [], [])
    assert shown["at_work"] == []

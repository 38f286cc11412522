"""A GitHub Actions runner with the features that our files use: steps, outputs, conditions."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.cli.program import MAX_S
from tests.support.s3 import S3Server

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
PRETEND = '#!/bin/sh\necho "$(basename $0) $*" >> {log}\n'


class Runner:
    """Runs the jobs of a workflow file one after another, each in its own checkout.

    Actions and installations are only recorded: Windlass is already installed.
    """

    def __init__(self, folder: Path, repository: Path, server: S3Server, bucket: str) -> None:
        self.folder = folder / "runner"
        self.repository = repository
        self.bucket = bucket
        self.secrets = server.environment() | {"LICENCE": "a secret"}
        self._broken: dict[str, str] = {}
        programs = self.folder / "programs"
        programs.mkdir(parents=True)
        self.installed = self.folder / "installed"
        for name in ("pip", "sudo"):
            (programs / name).write_text(PRETEND.format(log=self.installed))
            (programs / name).chmod(0o755)
        places = (str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", ""))
        self._machine = {
            "PATH": os.pathsep.join(places), "HOME": str(self.folder), "CI": "true",
            "GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "17",
        }  # fmt: skip

    def windlass(self, *words: str) -> str:
        """Runs a command as a person at the top of the repository."""
        done = subprocess.run(
            ["windlass", "fuzz", *words], cwd=self.repository, env=self._machine | self.secrets,
            capture_output=True, text=True, timeout=MAX_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> Any:
        """Returns the state of the pipeline."""
        return json.loads(self.windlass("status", "toy", "--bucket", self.bucket, "--json"))

    def break_next(self, job: str, command: str) -> None:
        """Replaces the last step of a job."""
        self._broken[job] = command

    def play(self, file: str, commit: str = "") -> dict[str, str]:
        """Runs a file and returns how each job ended."""
        workflow = yaml.load((self.repository / file).read_text(), Loader=yaml.BaseLoader)
        values = {f"secrets.{name}": value for name, value in self.secrets.items()}
        values |= {"inputs.commit": commit, "github.token": "made-here"}
        values["vars.AWS_REGION || 'us-east-1'"] = "us-east-1"
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
        *before, last = job["steps"]
        if name in self._broken:
            last = last | {"run": self._broken.pop(name)}
        for step in [*before, last]:
            if self._step(step, env, values) != 0:
                return "failure"
        for wanted, template in job.get("outputs", {}).items():
            values[f"needs.{name}.outputs.{wanted}"] = filled(template, values)
        return "success"

    def _step(self, step: Any, env: Any, values: dict[str, str]) -> int:
        workspace = self.folder / "workspace"
        if step.get("uses", "").startswith("actions/checkout@"):
            self._check_out(workspace, step.get("with", {}).get("fetch-depth", "1"))
        if "run" not in step:
            return 0
        output, script = self.folder / "output", self.folder / "script.sh"
        output.write_text("")
        script.write_text(step["run"])  # as it is: what is in `${{ }}` there would be code
        assert "${{" not in step["run"]
        given = {n: filled(v, values) for n, v in (env | step.get("env", {})).items()}
        done = subprocess.run(
            ["bash", "-e", script], cwd=workspace, timeout=MAX_S, check=False,
            env=self._machine | given | {"GITHUB_OUTPUT": str(output)},
        )  # fmt: skip
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        values.update({f"steps.{step.get('id')}.outputs.{n}": v for n, v in outputs.items()})
        return done.returncode

    def _check_out(self, workspace: Path, depth: str) -> None:
        shutil.rmtree(workspace, ignore_errors=True)
        shallow = [] if depth == "0" else [f"--depth={depth}"]
        subprocess.run(
            ["git", "clone", "--quiet", *shallow, f"file://{self.repository}", workspace],
            check=True, env=self._machine,
        )  # fmt: skip


def filled(text: str, values: dict[str, str]) -> str:
    """Replaces the expressions of a text by their values."""
    return EXPRESSION.sub(lambda found: values[found[1]], text)


def _holds(condition: str, values: dict[str, str]) -> bool:
    """Evaluates a condition: comparisons joined by ||."""
    plain = condition.removeprefix("always() && ").strip("()")
    found = []
    for comparison in plain.split(" || "):
        left, sign, right = comparison.split(" ")
        equal = values.get(left, "") == right.strip("'")
        found.append(equal if sign == "==" else not equal)
    return any(found)

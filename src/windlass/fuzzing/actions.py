"""The pipeline as workflows of GitHub Actions: the same cron lines, the same steps.

Each role is a file. A commit may be given when one is started by hand.
"""

from typing import Any, Final

import yaml

from windlass.domain.errors import InvalidInput
from windlass.domain.quantities import format_duration
from windlass.fuzzing.fleet import timeout_ms
from windlass.fuzzing.solver import ROLES, Role, Solver

MINUTE_MS: Final = 60_000
HOSTED_MS: Final = 345 * MINUTE_MS  # of the 360 minutes that GitHub gives a job of its own
HOSTED: Final = ("ubuntu-", "windows-", "macos-")
STEP_MINUTES: Final = 15
NEEDS: Final = {"typefuzz": "fuzz,typefuzz"}  # extras, by engine; all others need no more
GIVEN: Final = '${COMMIT:+--commit "$COMMIT"}'
FOUND: Final = "steps.take.outputs"


def workflows_of(solver: Solver, bucket: str, path: str) -> dict[str, str]:
    """Names and contents of the files; `path` is where the solver's file is in the repository."""
    if not bucket.startswith("s3://"):
        expected = "s3://BUCKET/PREFIX, which the runners of GitHub can reach"
        raise InvalidInput("bucket", expected, bucket)
    writer = _Writer(solver, bucket, path)
    return {f"fuzz-{solver.name}-{role}.yml": writer.file(role) for role in ROLES}


class _Writer:
    """The files of one solver."""

    def __init__(self, solver: Solver, bucket: str, path: str) -> None:
        self._solver = solver
        self._bucket = bucket
        self._path = path

    def file(self, role: Role) -> str:
        made: dict[str, Any] = {
            "name": f"fuzz {self._solver.name}: {role}",
            "on": {
                "schedule": [{"cron": self._solver.place(role).cron}],
                "workflow_dispatch": {
                    "inputs": {
                        "commit": {
                            "description": "Take this commit",
                            "required": False,
                            "default": "",
                            "type": "string",
                        }
                    }
                },
            },
            "permissions": {"contents": "read"},
            "env": self._env(role),
            "jobs": self._jobs(role),
        }
        if role == "manager":
            group = f"fuzz-{self._solver.name}-manager"
            made["concurrency"] = {"group": group, "cancel-in-progress": False}
        head = f"# Written by `windlass fuzz workflows {self._path}`.\n"
        return head + yaml.safe_dump(made, sort_keys=False, width=1000, allow_unicode=True)

    def _env(self, role: Role) -> dict[str, str]:
        env = {
            "WINDLASS_FUZZ_BUCKET": self._bucket,
            "AWS_ACCESS_KEY_ID": "${{ secrets.AWS_ACCESS_KEY_ID }}",
            "AWS_SECRET_ACCESS_KEY": "${{ secrets.AWS_SECRET_ACCESS_KEY }}",
            "AWS_REGION": "${{ vars.AWS_REGION || 'us-east-1' }}",
            "GITHUB_TOKEN": "${{ github.token }}",
        }
        return env | dict(self._solver.place(role).env)

    def _jobs(self, role: Role) -> dict[str, Any]:
        if role == "builder":
            return self._builder()
        if role == "fuzzer":
            return self._fuzzer()
        minutes = timeout_ms(self._solver, role) // MINUTE_MS
        command = f"windlass fuzz {role} {self._path} {GIVEN}"
        return {role: self._job(role, minutes, command, env=_from_inputs())}

    def _builder(self) -> dict[str, Any]:
        """Both builds at once, and then one of two ends."""
        minutes = self._solver.build.timeout_ms // MINUTE_MS + STEP_MINUTES
        # A build that was cancelled is neither: its lease runs out and it is begun again.
        failed = (
            "needs.build-production.result == 'failure' || needs.build-coverage.result == 'failure'"
        )
        jobs = {"next": self._take("builder", "next")}
        for kind in ("production", "coverage"):
            command = f'windlass fuzz builder make {self._path} "$COMMIT" --kind {kind}'
            jobs[f"build-{kind}"] = self._job(
                "builder", minutes, command, needs=["next"], env=_from_needs("next"),
                condition="needs.next.outputs.commit != ''",
            )  # fmt: skip
        both = ["next", "build-production", "build-coverage"]
        jobs["mark-as-built"] = self._mark("builder mark-built", both, "next")
        jobs["mark-as-failed"] = self._mark(
            "builder mark-failed", both, "next", f"always() && ({failed})"
        )
        return jobs

    def _fuzzer(self) -> dict[str, Any]:
        budget = self._solver.budget_ms
        hosted = self._solver.place("fuzzer").runs_on.startswith(HOSTED)
        length = format_duration(min(budget, HOSTED_MS) if hosted else budget)
        minutes = timeout_ms(self._solver, "fuzzer") // MINUTE_MS
        command = f'windlass fuzz fuzzer campaign {self._path} "$COMMIT" --budget {length}'
        both = ["select", "fuzz"]
        return {
            "select": self._take("fuzzer", "select"),
            "fuzz": self._job(
                "fuzzer", min(minutes, 360) if hosted else minutes, command, needs=["select"],
                env=_from_needs("select"), condition="needs.select.outputs.commit != ''",
            ),
            "update-fuzz-count": self._mark("fuzzer increment", both, "select"),
            "give-back": self._mark(
                "fuzzer release", both, "select",
                "always() && (needs.fuzz.result == 'failure' || needs.fuzz.result == 'cancelled')",
            ),
        }  # fmt: skip

    def _take(self, role: Role, step: str) -> dict[str, Any]:
        """The job that finds out which commit the others are about."""
        command = f"windlass fuzz {role} {step} {self._path} {GIVEN}"
        job = self._job(role, STEP_MINUTES, command, env=_from_inputs(), step="take")
        job["outputs"] = {name: f"${{{{ {FOUND}.{name} }}}}" for name in ("commit", "token")}
        return job

    def _mark(
        self, command: str, needs: list[str], told: str, condition: str | None = None
    ) -> dict[str, Any]:
        words = f'windlass fuzz {command} {self._path} "$COMMIT" --token="$TOKEN"'
        role: Role = "builder" if command.startswith("builder") else "fuzzer"
        return self._job(
            role, STEP_MINUTES, words, needs=needs, env=_from_needs(told), condition=condition
        )

    def _job(
        self, role: Role, minutes: int, command: str, *, env: dict[str, str],
        needs: list[str] | None = None, condition: str | None = None, step: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        extras = NEEDS.get(str(self._solver.engine["name"]), "fuzz")
        run: dict[str, Any] = {"id": step} if step else {}
        run |= {"run": command, "env": env}
        job: dict[str, Any] = {"needs": [*needs]} if needs else {}
        if condition:
            job["if"] = f"${{{{ {condition} }}}}"
        return job | {
            "runs-on": self._solver.place(role).runs_on,
            "timeout-minutes": minutes,
            "steps": [
                {"uses": "actions/checkout@v4"},
                {"uses": "actions/setup-python@v5", "with": {"python-version": "3.12"}},
                {"run": f"pip install 'windlass[{extras}]'"},
                run,
            ],
        }


def _from_inputs() -> dict[str, str]:
    """Through a variable, so that what a person typed is never part of a command."""
    return {"COMMIT": "${{ inputs.commit }}"}


def _from_needs(job: str) -> dict[str, str]:
    outputs = f"needs.{job}.outputs"
    return {"COMMIT": f"${{{{ {outputs}.commit }}}}", "TOKEN": f"${{{{ {outputs}.token }}}}"}

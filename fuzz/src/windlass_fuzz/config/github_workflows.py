"""The pipeline as GitHub Actions workflows, with the same cron lines and the same steps.

Each role is a file. A run that is started by hand can name a commit.
"""

from typing import Any, Final, NamedTuple

import yaml

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_duration
from windlass_fuzz.config.check_workflow import check_script, check_workflow
from windlass_fuzz.config.combinations import combinations_of
from windlass_fuzz.config.fleet_schedules import timeout_ms
from windlass_fuzz.config.solver_file import ROLES, Role, Solver
from windlass_fuzz.processes.environment import PASSED

MINUTE_MS: Final = 60_000
HOSTED_MS: Final = 345 * MINUTE_MS  # less than the 360 minutes that GitHub's runners give a job
HOSTED: Final = ("ubuntu-", "windows-", "macos-")
STEP_MINUTES: Final = 15
EXTRAS: Final = {"typefuzz": "fuzz,typefuzz"}  # by engine; the others need only `fuzz`
PACKAGES: Final = {"afl": "sudo apt-get update -qq && sudo apt-get install -qq -y afl++"}
COMMIT_FLAG: Final = '${COMMIT:+--commit "$COMMIT"}'
TAKE_OUTPUTS: Final = "steps.take.outputs"


def workflows_of(solver: Solver, bucket: str, path: str) -> dict[str, str]:
    """Returns file names and contents; `path` is the solver file's path in the repository."""
    if not bucket.startswith("s3://"):
        expected = "s3://BUCKET/PREFIX, which GitHub's runners can reach (--check needs no bucket)"
        raise InvalidInput("bucket", expected, bucket)
    writer = _Writer(solver, bucket, path)
    files = {
        f"fuzz-{solver.name}-{role}.yml": writer.file(role) for role in ROLES if role != "triage"
    }
    return files | check_file(solver, path)


def check_file(solver: Solver, path: str) -> dict[str, str]:
    """Returns the name and content of the workflow that checks pull requests; needs no bucket."""
    return {f"fuzz-{solver.name}-check.yml": _Writer(solver, "", path).check()}


def plain_check(solver: Solver, path: str) -> dict[str, str]:
    """Returns the name and content of the script that checks changes in other CI."""
    return {f"fuzz-{solver.name}-check.sh": check_script(solver, path, _extras(solver))}


class _Writer:
    """Writes the files of one solver."""

    def __init__(self, solver: Solver, bucket: str, path: str) -> None:
        self._solver = solver
        self._bucket = bucket
        self._path = path

    def file(self, role: Role) -> str:
        made: dict[str, Any] = {
            "name": f"fuzz {self._solver.name}: {role}",
            "on": {
                "schedule": [{"cron": self._solver.role_settings(role).cron}],
                "workflow_dispatch": {
                    "inputs": {
                        "commit": {
                            "description": "Use this commit",
                            "required": False,
                            "default": "",
                            "type": "string",
                        }
                    }
                },
            },
            "permissions": self._permissions(role),
            "env": self._env(role),
            "jobs": self._jobs(role),
        }
        if role == "manager":
            group = f"fuzz-{self._solver.name}-manager"
            made["concurrency"] = {"group": group, "cancel-in-progress": False}
        head = f"# Written by `windlass fuzz workflows {self._path}`.\n"
        return head + yaml.safe_dump(made, sort_keys=False, width=1000, allow_unicode=True)

    def check(self) -> str:
        """Returns the workflow that checks pull requests."""
        return check_workflow(self._solver, self._path, self._install(), self._set_up("builder"))

    def _env(self, role: Role) -> dict[str, str]:
        env = {
            "WINDLASS_FUZZ_BUCKET": self._bucket,
            "AWS_ACCESS_KEY_ID": "${{ secrets.AWS_ACCESS_KEY_ID }}",
            # Where GitHub keeps the secrets, not the secrets.
            "AWS_SECRET_ACCESS_KEY": "${{ secrets.AWS_SECRET_ACCESS_KEY }}",  # nosec B105
            "AWS_REGION": "${{ vars.AWS_REGION || 'us-east-1' }}",
            "GITHUB_TOKEN": "${{ github.token }}",  # nosec B105
        }
        place = self._solver.role_settings(role)
        secrets = {name: f"${{{{ secrets.{name} }}}}" for name in place.secrets}
        if secrets:
            env[PASSED] = ",".join(secrets)
        return env | dict(place.env) | secrets

    def _permissions(self, role: Role) -> dict[str, str]:
        """Returns the permissions of the run's token: only fuzzers may file issues, if they do
        here.
        """
        issues = self._solver.issues
        here = bool(issues) and issues.get("tracker", "github") == "github"
        files = role == "fuzzer" and here
        return {"contents": "read"} | ({"issues": "write"} if files else {})

    def _jobs(self, role: Role) -> dict[str, Any]:
        if role == "builder":
            return self._builder()
        if role == "fuzzer":
            return self._fuzzer()
        minutes = timeout_ms(self._solver, role) // MINUTE_MS
        command = f"windlass fuzz {role} {self._path} {COMMIT_FLAG}"
        title = "Map coverage" if role == "coverage" else "Find commits, update the schedule"
        return {
            role: self._job(
                role, minutes, Step(title, command, _from_inputs()), works=role == "coverage"
            )
        }

    def _builder(self) -> dict[str, Any]:
        """Runs both builds in parallel, then marks the commit as built or failed."""
        builds = {"coverage": 1, "production": len(combinations_of(self._solver))}
        # A cancelled build is neither built nor failed: its lease expires and it starts again.
        failed = (
            "needs.build-production.result == 'failure' || needs.build-coverage.result == 'failure'"
        )
        jobs = {"next": self._take("builder", "next")}
        for kind in ("production", "coverage"):
            command = f'windlass fuzz builder make {self._path} "$COMMIT" --kind {kind}'
            step = Step(f"Check out, build and upload ({kind})", command, _from_needs("next"))
            jobs[f"build-{kind}"] = self._job(
                "builder", builds[kind] * self._solver.build.timeout_ms // MINUTE_MS + STEP_MINUTES,
                step, needs=["next"], works=True,
                condition="needs.next.outputs.commit != ''",
            )  # fmt: skip
        both = ["next", "build-production", "build-coverage"]
        jobs["mark-as-built"] = self._mark("builder mark-built", both, "Mark as built")
        jobs["mark-as-failed"] = self._mark(
            "builder mark-failed", both, "Mark as failed", f"always() && ({failed})"
        )
        return jobs

    def _fuzzer(self) -> dict[str, Any]:
        budget = self._solver.budget_ms
        hosted = self._solver.role_settings("fuzzer").runs_on.startswith(HOSTED)
        length = format_duration(min(budget, HOSTED_MS) if hosted else budget)
        minutes = timeout_ms(self._solver, "fuzzer") // MINUTE_MS
        command = f'windlass fuzz fuzzer campaign {self._path} "$COMMIT" --budget {length}'
        both = ["select", "fuzz"]
        return {
            "select": self._take("fuzzer", "select"),
            "fuzz": self._job(
                "fuzzer", min(minutes, 360) if hosted else minutes,
                Step("Check out and fuzz", command, _from_needs("select")), needs=["select"],
                condition="needs.select.outputs.commit != ''", works=True,
            ),
            "update-fuzz-count": self._mark(
                "fuzzer increment", both, "Count the run, update the schedule"
            ),
            "give-back": self._mark(
                "fuzzer release", both, "Release the commit, uncounted",
                "always() && (needs.fuzz.result == 'failure' || needs.fuzz.result == 'cancelled')",
            ),
        }  # fmt: skip

    def _take(self, role: Role, step: str) -> dict[str, Any]:
        """Returns the job that chooses the commit for the other jobs."""
        command = f"windlass fuzz {role} {step} {self._path} {COMMIT_FLAG}"
        title = "Take the next commit" if step == "next" else "Select the least fuzzed commit"
        job = self._job(role, STEP_MINUTES, Step(title, command, _from_inputs(), "take"))
        job["outputs"] = {name: f"${{{{ {TAKE_OUTPUTS}.{name} }}}}" for name in ("commit", "token")}
        return job

    def _mark(
        self, command: str, needs: list[str], title: str, condition: str | None = None
    ) -> dict[str, Any]:
        """Returns a job about the commit that the first job of `needs` chose."""
        words = f'windlass fuzz {command} {self._path} "$COMMIT" --token="$TOKEN"'
        role: Role = "builder" if command.startswith("builder") else "fuzzer"
        step = Step(title, words, _from_needs(needs[0]))
        return self._job(role, STEP_MINUTES, step, needs=needs, condition=condition)

    def _job(
        self, role: Role, minutes: int, step: "Step", *,
        needs: list[str] | None = None, condition: str | None = None, works: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Returns a job with one step of ours; `works` adds the setup for builds and targets."""
        job: dict[str, Any] = {"needs": [*needs]} if needs else {}
        if condition:
            job["if"] = f"${{{{ {condition} }}}}"
        before = self._set_up(role) if works else []
        return job | {
            "runs-on": self._solver.role_settings(role).runs_on,
            "timeout-minutes": minutes,
            "steps": [self._checkout(), *self._install(), *before, step.as_yaml()],
        }

    def _checkout(self) -> dict[str, Any]:
        """Fetches the whole history if the workflow lives in the solver's own repository.

        It leaves no token in the checkout, where builds and targets would find it.
        """
        own = "://" not in self._solver.repository and "@" not in self._solver.repository
        given = {"persist-credentials": False} | ({"fetch-depth": 0} if own else {})
        return {"uses": "actions/checkout@v4", "with": given}

    def _install(self) -> list[dict[str, Any]]:
        extras = _extras(self._solver)
        return [
            {"uses": "actions/setup-python@v5", "with": {"python-version": "3.12"}},
            {"name": "Install Windlass", "run": f"pip install 'windlass[{extras}]'"},
        ]

    def _set_up(self, role: Role) -> list[dict[str, Any]]:
        """Installs the engine's packages and runs the solver file's `setup` lines."""
        packages = [PACKAGES[name] for name in _engines(self._solver) if name in PACKAGES]
        lines = [*packages, *self._solver.role_settings(role).setup]
        return [{"name": "Set up", "run": "\n".join(lines)}] if lines else []


def _engines(solver: Solver) -> list[str]:
    """Returns the names of the engines of all combinations."""
    return list(dict.fromkeys(one.engine for one in combinations_of(solver)))


def _extras(solver: Solver) -> str:
    return next((EXTRAS[name] for name in _engines(solver) if name in EXTRAS), "fuzz")


class Step(NamedTuple):
    """A step that runs one of our commands; its inputs arrive in environment variables."""

    title: str
    command: str
    env: dict[str, str]
    name: str | None = None

    def as_yaml(self) -> dict[str, Any]:
        made = {"name": self.title} | ({"id": self.name} if self.name else {})
        return made | {"run": self.command, "env": self.env}


def _from_inputs() -> dict[str, str]:
    """Passes the commit through a variable, so that user input never becomes part of a command."""
    return {"COMMIT": "${{ inputs.commit }}"}


def _from_needs(job: str) -> dict[str, str]:
    outputs = f"needs.{job}.outputs"
    return {"COMMIT": f"${{{{ {outputs}.commit }}}}", "TOKEN": f"${{{{ {outputs}.token }}}}"}

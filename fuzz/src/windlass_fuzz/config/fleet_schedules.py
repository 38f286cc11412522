"""The pipeline as schedules of a fleet: each role is a job that runs `windlass fuzz …`.

A job carries the whole solver file on standard input, so that workers need no copy of it.
"""

from typing import Final, Literal, NamedTuple

import msgspec

from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import Validator
from windlass.messages.schedules import ScheduleRequest
from windlass_fuzz.config.combinations import combinations_of
from windlass_fuzz.config.solver_file import ROLES, STANDARD_INPUT, Role, Solver

MARGIN_MS: Final = 1_800_000
MANAGER_MS: Final = 600_000
COVERAGE_MS: Final = 86_400_000
GIT: Final = "git:available==true"


class NamedSchedule(NamedTuple):
    """A schedule and its name."""

    name: str
    request: ScheduleRequest


class WorkerCommand(NamedTuple):
    """How workers call the program: the bucket, the work folder and the program's name."""

    bucket: str
    work: str | None = None
    program: str = "windlass"


def schedules_of(solver: Solver, start: WorkerCommand) -> list[NamedSchedule]:
    """Returns the schedules of a solver; leases keep overlapping runs apart.

    Raises for settings that a server with the default configuration refuses.
    """
    validator = Validator(Config())
    for role in ROLES:
        validator.validate(job_of(solver, role, start), f"roles.{role}")
    return [
        NamedSchedule(
            f"fuzz-{solver.name}-{role}",
            ScheduleRequest(
                cron=solver.role_settings(role).cron,
                zone="UTC",
                overlap=_overlap(role),
                catch_up="last" if role in ("manager", "coverage") else "none",
                jobs=[job_of(solver, role, start)],
            ),
        )
        for role in ROLES
    ]


def job_of(solver: Solver, role: Role, start: WorkerCommand) -> JobSpec:
    """Returns the job of a role, as it would be submitted."""
    place = solver.role_settings(role)
    argv = [start.program, "fuzz", role, STANDARD_INPUT, "--bucket", start.bucket]
    if start.work is not None:
        argv += ["--work", start.work]
    args: dict[str, object] = {"argv": argv, "stdin": _description(solver, start.bucket)}
    if role == "fuzzer":
        argv.append("--triage-elsewhere")
    if place.env:
        args["env"] = dict(place.env)
    return JobSpec(
        task="shell",
        name=f"fuzz {solver.name} {role}",
        args=args,
        queue=place.queue,
        requires=tuple(place.requires or _requires(solver, role)),
        resources=dict(place.resources) or None,
        secrets=tuple(place.secrets),
        timeout=timeout_ms(solver, role) / 1000,
        labels={"fuzz": solver.name, "role": role},
    )


class Change(NamedTuple):
    """The change that a check looks at, as the options of `windlass fuzz check`."""

    base: str | None
    head: str
    budget_ms: int


def check_job(solver: Solver, start: WorkerCommand, change: Change) -> JobSpec:
    """Returns the job of a check; a worker that can build has what it needs."""
    place = solver.role_settings("builder")
    argv = [start.program, "fuzz", "check", STANDARD_INPUT, "--bucket", start.bucket]
    argv += [] if change.base is None else ["--base", change.base]
    argv += ["--head", change.head, "--budget", f"{change.budget_ms}ms", "--output", "."]
    args: dict[str, object] = {
        "argv": argv, "stdin": _description(solver, start.bucket), "env": dict(place.env),
        "artifacts": ["summary.md", "report.sarif", "result.json", "inputs/*"],
    }  # fmt: skip
    return JobSpec(
        task="shell",
        name=f"fuzz {solver.name} check",
        args=args,
        requires=tuple(place.requires or [GIT]),
        resources=dict(place.resources) or None,
        timeout=(2 * change.budget_ms + 2 * builds_ms(solver) + MARGIN_MS) / 1000,
        labels={"fuzz": solver.name, "role": "check"},
    )


def timeout_ms(solver: Solver, role: Role) -> int:
    """Returns how long a run of a role may take, with a margin for setup and triage."""
    if role == "manager":
        return MANAGER_MS
    if role == "builder":
        return builds_ms(solver) + MARGIN_MS
    if role == "fuzzer":
        return solver.budget_ms + MARGIN_MS
    if role == "triage":
        return solver.findings.triage_ms + MARGIN_MS
    return COVERAGE_MS


def builds_ms(solver: Solver) -> int:
    """Returns how long all builds of a commit may take."""
    return (len(combinations_of(solver)) + 1) * solver.build.timeout_ms


def _overlap(role: Role) -> Literal["skip", "allow"]:
    return "skip" if role in ("manager", "coverage") else "allow"


def _requires(solver: Solver, role: Role) -> list[str]:
    """Returns the worker requirement: git, except for a manager that uses the GitHub API."""
    return [] if role == "manager" and solver.commits.source == "github" else [GIT]


def _description(solver: Solver, bucket: str) -> str:
    described = msgspec.structs.replace(solver, bucket=bucket)
    return msgspec.json.encode(described).decode()

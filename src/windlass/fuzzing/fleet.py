"""The pipeline as schedules of a fleet: each role is a job that runs `windlass fuzz …`.

A job carries the solver's whole description to its worker, on standard input, so that no
file has to be there.
"""

from typing import Final, Literal, NamedTuple

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.fuzzing.solver import ROLES, STANDARD_INPUT, Role, Solver
from windlass.wire.schedules import ScheduleRequest

MARGIN_MS: Final = 1_800_000
MANAGER_MS: Final = 600_000
COVERAGE_MS: Final = 86_400_000
GIT: Final = "git:available==true"


class Planned(NamedTuple):
    """A schedule and its name."""

    name: str
    request: ScheduleRequest


class Start(NamedTuple):
    """How workers call the program, and where it finds what."""

    bucket: str
    work: str | None = None
    program: str = "windlass"


def schedules_of(solver: Solver, start: Start) -> list[Planned]:
    """The four schedules of a solver; leases keep builders and fuzzers that overlap apart."""
    return [
        Planned(
            f"fuzz-{solver.name}-{role}",
            ScheduleRequest(
                cron=solver.place(role).cron,
                zone="UTC",
                overlap=_overlap(role),
                catch_up="last" if role in ("manager", "coverage") else "none",
                jobs=[job_of(solver, role, start)],
            ),
        )
        for role in ROLES
    ]


def job_of(solver: Solver, role: Role, start: Start) -> JobSpec:
    """The job of a role, as it would be submitted."""
    place = solver.place(role)
    argv = [start.program, "fuzz", role, STANDARD_INPUT, "--bucket", start.bucket]
    if start.work is not None:
        argv += ["--work", start.work]
    args: dict[str, object] = {"argv": argv, "stdin": _description(solver, start.bucket)}
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


def timeout_ms(solver: Solver, role: Role) -> int:
    """How long a role's run may take, with something over for setting up and triage."""
    if role == "manager":
        return MANAGER_MS
    if role == "builder":
        return 2 * solver.build.timeout_ms + MARGIN_MS
    if role == "fuzzer":
        return solver.budget_ms + MARGIN_MS
    return COVERAGE_MS


def _overlap(role: Role) -> Literal["skip", "allow"]:
    return "skip" if role in ("manager", "coverage") else "allow"


def _requires(solver: Solver, role: Role) -> list[str]:
    """All but a manager that asks GitHub work on a copy of the repository."""
    return [] if role == "manager" and solver.commits.source == "github" else [GIT]


def _description(solver: Solver, bucket: str) -> str:
    described = msgspec.structs.replace(solver, bucket=bucket)
    return msgspec.json.encode(described).decode()

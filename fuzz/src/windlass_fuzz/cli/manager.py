"""`windlass fuzz manager`: finds new commits, and updates the queue and the schedule."""

from typing import Annotated

from cyclopts import Parameter

from windlass.cli.options.flags import Json
from windlass.cli.output.text import print_json, say
from windlass_fuzz.buckets.probe import sweep_probes
from windlass_fuzz.cli.app import (
    DEFAULT_LOCATION,
    DryRun,
    FuzzContext,
    Location,
    SolverName,
    fuzz,
    run_step,
)
from windlass_fuzz.processes.workspace import workspace
from windlass_fuzz.roles.manager import Manager, ManagerReport
from windlass_fuzz.sources.open import open_commit_source

SHORT = 12


@fuzz.command
def manager(
    solver: SolverName,
    /,
    *,
    commit: Annotated[
        str | None,
        Parameter(help="Only add this commit to the build queue, whatever it changes."),
    ] = None,
    location: Location = DEFAULT_LOCATION,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Queue new commits, schedule built ones, and limit the size of the schedule."""

    async def step(context: FuzzContext) -> ManagerReport:
        runtime = context.pipeline.runtime
        with workspace(context.work, context.solver.name, "manager") as folder:
            commits = open_commit_source(context.solver, folder, runtime)
            try:
                role = Manager(
                    context.pipeline, commits, context.solver.commits, context.solver.watched
                )
                if commit is None:
                    now_ms = context.pipeline.now_ms()
                    await sweep_probes(context.pipeline.bucket, context.solver.name, now_ms)
                    return await role.run_once()
                name, added = await role.add(commit)
                return ManagerReport(queued=(name,) if added else ())
            finally:
                await commits.close()

    report = run_step(solver, location, step, dry_run=dry_run)
    if json:
        print_json(report)
        return
    for line in _lines(report):
        say(f"would: {line}" if dry_run else line)
    if dry_run:
        say("nothing was written")


def _lines(report: ManagerReport) -> list[str]:
    lines = []
    if report.fresh and not report.branches:
        lines.append(f"start from the newest {report.looked_at}: {report.fresh}")
    lines += [
        f"{one.name}: start from the newest {one.looked_at}: {one.fresh}"
        for one in report.branches
        if one.fresh
    ]
    lines += [f"{name}: the repository has no such branch; it is skipped" for name in report.gone]
    if report.left_out:
        lines.append(f"leave out, as newer branches are watched: {' '.join(report.left_out)}")
    for action, commits in (
        ("skip, too old", report.passed_over),
        ("queue", report.queued),
        ("schedule", report.scheduled),
        ("drop, binaries are gone", report.dropped),
        ("queue again, builds of some combinations are gone", report.rebuilt),
        ("remove to make room", report.made_room),
        ("remove, on no watched branch", report.unwatched),
    ):
        if commits:
            lines.append(f"{action}: {' '.join(commit[:SHORT] for commit in commits)}")
    if report.swept:
        lines.append(f"delete {report.swept} builds older than 7 days")
    return lines or ["nothing to do"]

"""`windlass fuzz manager`: look for commits, keep the queue and the schedule."""

from typing import Annotated

from cyclopts import Parameter

from windlass.cli.fuzz_app import HERE, DryRun, Opened, Place, SolverName, fuzz, run_step
from windlass.cli.options.flags import Json
from windlass.cli.output.text import print_json, say
from windlass.fuzzing.manager import Manager, Report
from windlass.fuzzing.opening import open_commits
from windlass.fuzzing.workplace import workplace

SHORT = 12


@fuzz.command
def manager(
    solver: SolverName,
    /,
    *,
    commit: Annotated[
        str | None,
        Parameter(help="Put this commit into the build queue, whatever it changes; do no more."),
    ] = None,
    at: Place = HERE,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Queue new commits, schedule built ones, keep the size of the schedule."""

    async def step(there: Opened) -> Report:
        around = there.board.around
        with workplace(there.work, there.solver.name, "manager") as folder:
            commits = open_commits(there.solver, folder, around)
            try:
                working = Manager(there.board, commits, there.solver.commits)
                if commit is None:
                    return await working.run_once()
                name, added = await working.add(commit)
                return Report(queued=(name,) if added else ())
            finally:
                await commits.close()

    report = run_step(solver, at, step, dry_run=dry_run)
    if json:
        print_json(report)
        return
    for line in _lines(report):
        say(f"would: {line}" if dry_run else line)
    if dry_run:
        say("nothing was written")


def _lines(report: Report) -> list[str]:
    lines = []
    if report.fresh:
        lines.append(f"start from the newest {report.looked_at}: {report.fresh}")
    for said, commits in (
        ("pass over, too old", report.passed_over),
        ("queue", report.queued),
        ("schedule", report.scheduled),
        ("drop, binaries are gone", report.dropped),
        ("make room", report.made_room),
    ):
        if commits:
            lines.append(f"{said}: {' '.join(commit[:SHORT] for commit in commits)}")
    if report.swept:
        lines.append(f"remove {report.swept} builds older than 7 days")
    return lines or ["nothing to do"]

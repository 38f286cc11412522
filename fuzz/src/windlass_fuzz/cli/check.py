"""`windlass fuzz check`: fuzzes a change before it is merged, and refuses it for new bugs."""

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Flag, Json
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.text import print_json, say
from windlass.domain.values.errors import Conflict, WindlassError
from windlass.messages.files import ArtifactList
from windlass_fuzz.buckets.bucket import Bucket
from windlass_fuzz.buckets.dry_run import DryRunBucket
from windlass_fuzz.cli.app import (
    DEFAULT_LOCATION,
    Location,
    SolverName,
    check_options,
    fuzz,
    set_workflow_outputs,
    warn,
)
from windlass_fuzz.cli.progress import Progress
from windlass_fuzz.cli.report_output import say_output
from windlass_fuzz.cli.roles import parse_budget_ms, stop_on_sigterm
from windlass_fuzz.config.fleet_schedules import Change, WorkerCommand, check_job
from windlass_fuzz.config.solver_file import Solver, load_named
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.processes.workspace import workspace
from windlass_fuzz.roles.change_check import RESULT, ChangeCheck, CheckReport
from windlass_fuzz.state.open import holder_name, open_bucket, real_runtime


@fuzz.command
def check(
    solver: SolverName,
    /,
    *,
    base: Annotated[
        str | None,
        Parameter(
            help="The commit or branch to compare with. Default: the solver's branch; of several, "
            "the nearest one."
        ),
    ] = None,
    head: Annotated[str, Parameter(help="The change: a commit or a branch.")] = "HEAD",
    budget: Annotated[str, Parameter(help="How long to fuzz, such as 10m.")] = "10m",
    output: Annotated[
        Path, Parameter(help="The folder for summary.md, report.sarif, result.json and inputs.")
    ] = Path("fuzz-check"),
    fleet: Annotated[
        Flag, Parameter(help="Check it in a job of the fleet, and fetch the results.")
    ] = False,
    location: Location = DEFAULT_LOCATION,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Fuzz a change against its base; exit with 1 if it introduces a bug.

    It builds both, fuzzes from the tests that reach the change, and writes a summary, a SARIF
    file and the inputs. It reads the bucket if there is one, and writes nothing there.
    """
    described = load_named(solver)
    check_options(described)
    output.mkdir(parents=True, exist_ok=True)
    if fleet:
        change = Change(base, head, parse_budget_ms(budget))
        report = _on_fleet(described, location, change, output, at)
    else:
        report = asyncio.run(_check(described, location, base, head, budget, output, json))
    set_workflow_outputs(outcome=report.outcome, base=report.base, head=report.head)
    if json:
        print_json(report)
    else:
        _say(report, output)
    if report.outcome != "passed":
        raise SystemExit(FAILED)


async def _check(
    solver: Solver,
    location: Location,
    base: str | None,
    head: str,
    budget: str,
    output: Path,
    json: bool,
) -> CheckReport:
    runtime = real_runtime()
    progress = Progress(runtime.clock, json)
    stored = _open_stored(location.bucket_of(solver))
    with workspace(location.work_root(), solver.name, "check") as folder, progress.live():
        checking = ChangeCheck(
            solver, runtime, holder_name(), folder, output, stored, progress.notify,
            progress.fuzzing_progress, parse_budget_ms(budget),
        )  # fmt: skip
        return await stop_on_sigterm(checking.run_once(base, head))


def _on_fleet(
    solver: Solver, location: Location, change: Change, output: Path, at: Connection
) -> CheckReport:
    """Runs the check as a job, and copies its files here."""
    bucket = location.bucket_of(solver)
    start = WorkerCommand(bucket if "://" in bucket else str(Path(bucket).absolute()))
    with at.client() as client:
        job = client.submit(check_job(solver, start, change))
        warn(f"checking in job {job.id}: windlass logs {job.id} --follow")
        ended = job.wait()
        files = at.call("GET", f"/api/v1/jobs/{job.id}/artifacts", ArtifactList).artifacts
        for one in files:
            target = output / one.name
            target.parent.mkdir(parents=True, exist_ok=True)
            job.download(one.name, target)
    if not any(one.name == RESULT for one in files):
        why = f"job {job.id} ended as {ended.state} without a result; see windlass logs {job.id}"
        raise Conflict("not_checked", why)
    return msgspec.json.decode((output / RESULT).read_bytes(), type=CheckReport)


def _open_stored(url: str) -> Bucket | None:
    """Opens the bucket for reading; a check also works without one."""
    try:
        return DryRunBucket(open_bucket(url, make=False))
    except WindlassError as error:
        warn(f"checking without the bucket: {error}")
        return None


def _say(report: CheckReport, output: Path) -> None:
    count = report.statistics
    ran = ""
    if count is not None:
        ran = f"{count_of(count.executions, 'execution')} from {count_of(report.tests, 'test')}"
    base = report.base[:12] + (f" on {report.branch}" if report.branch else "")
    say(f"{report.head[:12]} against {base}" + (f": {ran}" if ran else ""))
    if report.base_why:
        say(f"  the base cannot be built, so every bug counts as new: {report.base_why}")
    for one in report.findings:
        base = one.base + (f", as {one.base_title}" if one.base_title else "")
        say(f"  {one.age}: {one.title} ({count_of(one.size, 'byte')}; the base {base})")
        say(f"    {output / one.input}")
    for known in report.fixed:
        say(f"  fixed: {known.title} ({known.key}; its input runs fine now)")
    said = {
        "passed": f"passed without fuzzing: {report.why}"
        if report.why
        else "passed: no new bug was found",
        "refused": "refused: the change brings a fixed bug back, nothing was fuzzed"
        if report.known
        else "refused: the change introduces a bug",
        "unhealthy": f"refused: the change could not be fuzzed: {report.why}",
    }
    say(said[report.outcome])
    say_output(report.output)
    say(f"  summary: {output / 'summary.md'}, SARIF: {output / 'report.sarif'}")

"""The commands that run a role: builder, fuzzer, coverage, and `run` for all of them."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from cyclopts import Parameter

from windlass.cli.options.flags import Flag, Json
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.text import print_json, say
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.domain.values.quantities import parse_duration_ms
from windlass_fuzz.buckets.layout import KINDS, Kind
from windlass_fuzz.cli.app import (
    DEFAULT_LOCATION,
    CommitName,
    DryRun,
    FuzzContext,
    Location,
    SolverName,
    builder,
    fuzz,
    fuzzer,
    run_step,
    set_workflow_outputs,
)
from windlass_fuzz.cli.plan_output import say_build_plan, say_coverage_plan, say_fuzz_plan
from windlass_fuzz.cli.progress import Progress
from windlass_fuzz.cli.report_output import (
    about_report,
    print_fuzzed,
    say_built,
    say_fuzzed,
    say_triaged,
)
from windlass_fuzz.coverage.html import INDEX
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.processes.workspace import workspace
from windlass_fuzz.roles.builder import Builder, BuildReport
from windlass_fuzz.roles.coverage import (
    CoveragePlan,
    CoverageReport,
    CoverageRole,
    HtmlResult,
    parse_shard,
)
from windlass_fuzz.roles.engine_factory import cores_of
from windlass_fuzz.roles.fuzzer import Fuzzer, FuzzReport, RunBounds
from windlass_fuzz.roles.plan import BuildPlan, FuzzPlan, Planner
from windlass_fuzz.roles.triager import Triager, TriageReport

T = TypeVar("T")

RELEASED: Final = "the commit was released"

Commit = Annotated[str | None, Parameter(help="Use this commit. Default: the next one.")]
Budget = Annotated[
    str | None,
    Parameter(help="How long to fuzz, including setup. Default: the solver file's budget."),
]
UntilBug = Annotated[
    bool, Parameter(name="--until-bug", show_default=False, help="Stop at the first bug.")
]
TriageElsewhere = Annotated[
    bool,
    Parameter(
        name="--triage-elsewhere", show_default=False,
        help="Leave new failures to `windlass fuzz triage` while the engine runs.",
    ),
]  # fmt: skip
UntilQuiet = Annotated[
    str | None,
    Parameter(
        help="Stop once nothing new was found for so long. Default: the solver file's until_quiet."
    ),
]


@builder.default
def build(
    solver: SolverName,
    /,
    *,
    commit: Commit = None,
    location: Location = DEFAULT_LOCATION,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Build the next commit in the queue: make and upload both binaries, mark it as built."""

    async def step(context: FuzzContext) -> BuildReport:
        progress = Progress(context.pipeline.runtime.clock, json)
        with workspace(context.work, context.solver.name, "builder") as folder:
            role = Builder(context.solver, context.pipeline, folder, progress.notify)
            return await stop_on_sigterm(role.run_once(commit), RELEASED)

    async def plan(context: FuzzContext) -> BuildPlan:
        with workspace(context.work, context.solver.name, "builder") as folder:
            return await stop_on_sigterm(
                Planner(context.solver, context.pipeline, folder).build(commit)
            )

    if dry_run:
        _print_plan(run_step(solver, location, plan, dry_run=True), say_build_plan, json)
        return
    report = run_step(solver, location, step)
    set_workflow_outputs(commit=report.commit or "", outcome=report.outcome)
    if json:
        print_json(report)
    else:
        say_built(report, solver)
    if report.outcome == "failed":
        raise SystemExit(FAILED)


@builder.command(name="make")
def make_build(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    kind: Literal["production", "coverage", "both"] = "both",
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Build and upload a commit that `next` returned, without changing the queue.

    Parameters
    ----------
    kind
        Which of the two builds to make.
    """
    kinds: tuple[Kind, ...] = tuple(KINDS) if kind == "both" else (kind,)

    async def step(context: FuzzContext) -> str:
        progress = Progress(context.pipeline.runtime.clock, json)
        with workspace(context.work, context.solver.name, "builder") as folder:
            role = Builder(context.solver, context.pipeline, folder, progress.notify)
            return await stop_on_sigterm(role.make_and_try(commit, kinds))

    alarm = run_step(solver, location, step)
    if json:
        print_json({"commit": commit, "kinds": kinds, "alarm": alarm})
    else:
        say("done")


@fuzzer.default
def fuzz_next(
    solver: SolverName,
    /,
    *,
    commit: Commit = None,
    budget: Budget = None,
    until_bug: UntilBug = False,
    until_quiet: UntilQuiet = None,
    triage_elsewhere: TriageElsewhere = False,
    location: Location = DEFAULT_LOCATION,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Fuzz the least fuzzed commit, file what is found, and count the run."""

    async def step(context: FuzzContext) -> FuzzReport:
        bounds = _bounds(budget, until_bug, until_quiet)._replace(triage_elsewhere=triage_elsewhere)
        return await _fuzz(context, commit, bounds, json, counted=True)

    async def plan(context: FuzzContext) -> FuzzPlan:
        notify = Progress(context.pipeline.runtime.clock, json).notify
        with workspace(context.work, context.solver.name, "fuzzer") as folder:
            planner = Planner(context.solver, context.pipeline, folder, notify)
            return await stop_on_sigterm(planner.fuzz(commit, parse_budget_ms(budget)))

    if dry_run:
        _print_plan(run_step(solver, location, plan, dry_run=True), say_fuzz_plan, json)
        return
    print_fuzzed(run_step(solver, location, step), solver, json)


@fuzzer.command
def campaign(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    budget: Budget = None,
    until_bug: UntilBug = False,
    until_quiet: UntilQuiet = None,
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Fuzz a commit that `select` returned, without changing the schedule."""

    async def step(context: FuzzContext) -> FuzzReport:
        bounds = _bounds(budget, until_bug, until_quiet)
        return await _fuzz(context, commit, bounds, json, counted=False)

    print_fuzzed(run_step(solver, location, step), solver, json)


@fuzz.command
def triage(
    solver: SolverName,
    /,
    *,
    budget: Annotated[
        str | None,
        Parameter(help="How long it may take. Default: the solver file's findings.triage."),
    ] = None,
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Triage what running fuzzers have found so far, search for origins, and file issues.

    Several runs at the same time take different bugs.
    """

    async def step(context: FuzzContext) -> TriageReport:
        progress = Progress(context.pipeline.runtime.clock, json)
        with workspace(context.work, context.solver.name, "triage") as folder:
            role = Triager(
                context.solver, context.pipeline, folder, progress.notify,
                parse_budget_ms(budget),
            )  # fmt: skip
            return await stop_on_sigterm(role.run_once(), "its claims end with it")

    report = run_step(solver, location, step)
    if json:
        print_json(report)
    else:
        say_triaged(report, solver)


@fuzz.command
def coverage(
    solver: SolverName,
    /,
    *,
    commit: Commit = None,
    shard: Annotated[
        str, Parameter(help="Map a part of the tests, such as 2/4; the last part merges all parts.")
    ] = "1/1",
    html: Annotated[
        Path | None,
        Parameter(
            metavar="DIR",
            help="Only make the HTML report of what tests and corpus reach, and also write it to "
            "this folder.",
        ),
    ] = None,
    location: Location = DEFAULT_LOCATION,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Map which tests reach which functions, with the newest coverage build."""

    part = parse_shard(shard)
    if html is not None and html.exists() and not html.is_dir():
        raise InvalidSetting("html", f"{html} is a file; name a folder for the report", str(html))
    if html is not None and not dry_run:
        _make_html(solver, commit, html.absolute(), location, json)
        return

    async def step(context: FuzzContext) -> CoverageReport:
        progress = Progress(context.pipeline.runtime.clock, json)
        with workspace(context.work, context.solver.name, "coverage") as folder, progress.live():
            role = CoverageRole(
                context.solver, context.pipeline, folder, progress.notify,
                progress.mapping_progress, cores_of(context.solver),
            )  # fmt: skip
            return await stop_on_sigterm(role.run_once(commit, part))

    async def plan(context: FuzzContext) -> CoveragePlan:
        with workspace(context.work, context.solver.name, "coverage") as folder:
            role = CoverageRole(
                context.solver, context.pipeline, folder, cores=cores_of(context.solver)
            )
            return await stop_on_sigterm(role.plan(commit, part))

    if dry_run:
        _print_plan(run_step(solver, location, plan, dry_run=True), say_coverage_plan, json)
        return
    report = run_step(solver, location, step)
    if json:
        print_json(report)
        return
    tests, functions = count_of(report.tests, "test"), count_of(report.functions, "function")
    say(f"{report.commit}: {functions} reached by {tests}")
    for trouble in report.troubles:
        say(f"  without coverage: {trouble}")
    if report.missing:
        say(f"  the map still needs the parts {', '.join(report.missing)}")
    if report.html is not None:
        for line in about_report(report.html):
            say(f"  {line}")


def _make_html(solver: str, commit: str | None, into: Path, location: Location, json: bool) -> None:
    async def step(context: FuzzContext) -> HtmlResult:
        progress = Progress(context.pipeline.runtime.clock, json)
        with workspace(context.work, context.solver.name, "coverage") as folder:
            role = CoverageRole(
                context.solver, context.pipeline, folder, progress.notify,
                cores=cores_of(context.solver),
            )  # fmt: skip
            return await stop_on_sigterm(role.make_html(commit, into))

    made = run_step(solver, location, step)
    if json:
        print_json(made)
    else:
        for line in about_report(made.report):
            say(line)
        say(str(into / INDEX))


@fuzz.command(name="run")
def run_all(
    solver: SolverName,
    /,
    *,
    rounds: Annotated[int, Parameter(help="How many commits to fuzz.")] = 1,
    budget: Budget = None,
    until_bug: UntilBug = False,
    until_quiet: UntilQuiet = None,
    location: Location = DEFAULT_LOCATION,
    json: Flag = False,
) -> None:
    """Run all roles on this machine, one after another: manager, builds, coverage map, fuzzing.

    Exits with 1 if nothing was fuzzed because builds failed or did nothing.
    """
    from windlass_fuzz.cli.run_all import Everything, run_everything

    def fuzzed(report: FuzzReport) -> None:
        if not json:
            say_fuzzed(report, solver)

    async def step(context: FuzzContext) -> Everything:
        progress = Progress(context.pipeline.runtime.clock, json)
        everything = run_everything(
            context, progress, rounds, _bounds(budget, until_bug, until_quiet), fuzzed
        )
        return await stop_on_sigterm(everything, RELEASED)

    reports, failed = run_step(solver, location, step)
    if json:
        print_json(reports)
    outcomes = {report.outcome for report in reports}
    if "fuzzed" not in outcomes and (failed or "unhealthy" in outcomes):
        raise SystemExit(FAILED)


async def stop_on_sigterm(
    work: Coroutine[Any, Any, T], left: str = "the state was not changed"
) -> T:
    """Runs `work` and cancels it on SIGTERM; the error then says what is `left`."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        return await task
    except asyncio.CancelledError:
        if stopped:
            raise Conflict("stopped", f"stopped by SIGTERM; {left}") from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _fuzz(
    context: FuzzContext, commit: str | None, bounds: RunBounds, json: bool, *, counted: bool
) -> FuzzReport:  # fmt: skip
    progress = Progress(context.pipeline.runtime.clock, json)
    with workspace(context.work, context.solver.name, "fuzzer") as folder, progress.live():
        role = Fuzzer(
            context.solver, context.pipeline, folder, progress.notify, progress.fuzzing_progress,
            budget_ms=bounds.budget_ms, until_bug=bounds.until_bug, quiet_ms=bounds.quiet_ms,
            triage_elsewhere=bounds.triage_elsewhere,
        )  # fmt: skip
        if counted:
            return await stop_on_sigterm(role.run_once(commit), RELEASED)
        return await stop_on_sigterm(role.campaign(await role.resolve_built(commit or "")))


def _bounds(budget: str | None, until_bug: bool, until_quiet: str | None) -> RunBounds:
    return RunBounds(
        parse_budget_ms(budget), until_bug, parse_budget_ms(until_quiet, "until_quiet")
    )


def parse_budget_ms(budget: str | None, field: str = "budget") -> int:
    """Returns the milliseconds of a budget, and 0 for the solver's own."""
    if budget is None:
        return 0
    given = parse_duration_ms(budget, field)
    if given == 0:
        raise InvalidInput(field, "more than 0", budget)
    return given


def _print_plan(plan: T, tell: Callable[[T], None], json: bool) -> None:
    if json:
        print_json(plan)
    else:
        tell(plan)

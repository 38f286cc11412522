"""The roles that work: builder, fuzzer, coverage mapper, and all of them in a row."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final, Literal, TypeVar

from cyclopts import Parameter

from windlass.cli.fuzz_app import (
    HERE,
    CommitName,
    DryRun,
    Opened,
    Place,
    SolverName,
    builder,
    fuzz,
    fuzzer,
    run_step,
    tell_workflow,
)
from windlass.cli.fuzz_foresight import say_build_plan, say_coverage_plan, say_fuzz_plan
from windlass.cli.fuzz_progress import Progress
from windlass.cli.fuzz_reports import count_of, print_fuzzed, say_built, say_fuzzed
from windlass.cli.options.flags import Flag, Json
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.text import print_json, say
from windlass.domain.values.errors import Conflict
from windlass.domain.values.quantities import parse_duration_ms
from windlass.fuzzing.builder import Builder, BuildReport
from windlass.fuzzing.coverage.role import (
    CoveragePlan,
    CoverageReport,
    CoverageRole,
    parse_shard,
)
from windlass.fuzzing.foresight import BuildPlan, Foresight, FuzzPlan
from windlass.fuzzing.fuzzer import Fuzzer, FuzzReport, cores_of
from windlass.fuzzing.layout import KINDS, Kind
from windlass.fuzzing.workplace import workplace

T = TypeVar("T")

GIVEN_BACK: Final = "the commit was given back"

Commit = Annotated[str | None, Parameter(help="Take this commit. Default: the next one.")]
Budget = Annotated[
    str | None, Parameter(help="How long to fuzz, setting up included. Default: the solver's own.")
]
UntilBug = Annotated[
    bool, Parameter(name="--until-bug", show_default=False, help="Stop at the first bug.")
]


@builder.default
def build(
    solver: SolverName,
    /,
    *,
    commit: Commit = None,
    at: Place = HERE,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Build the next commit of the queue: both binaries, uploaded, then marked as built."""

    async def step(there: Opened) -> BuildReport:
        progress = Progress(there.board.around.clock, json)
        with workplace(there.work, there.solver.name, "builder") as folder:
            working = Builder(there.solver, there.board, folder, progress.told)
            return await stoppable(working.run_once(commit), GIVEN_BACK)

    async def plan(there: Opened) -> BuildPlan:
        with workplace(there.work, there.solver.name, "builder") as folder:
            return await stoppable(Foresight(there.solver, there.board, folder).build(commit))

    if dry_run:
        _print_plan(run_step(solver, at, plan, dry_run=True), say_build_plan, json)
        return
    report = run_step(solver, at, step)
    tell_workflow(commit=report.commit or "", outcome=report.outcome)
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
    at: Place = HERE,
    json: Json = False,
) -> None:
    """Build and upload one commit that `next` told, without a change of the queue.

    Parameters
    ----------
    kind
        Which of the two builds to make.
    """
    kinds: tuple[Kind, ...] = tuple(KINDS) if kind == "both" else (kind,)

    async def step(there: Opened) -> None:
        progress = Progress(there.board.around.clock, json)
        with workplace(there.work, there.solver.name, "builder") as folder:
            working = Builder(there.solver, there.board, folder, progress.told)
            await stoppable(working.make(commit, kinds))

    run_step(solver, at, step)
    if json:
        print_json({"commit": commit, "kinds": kinds})
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
    at: Place = HERE,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Fuzz the least fuzzed commit, file what is found, and count it."""

    async def step(there: Opened) -> FuzzReport:
        return await _fuzz(there, commit, budget, until_bug, json, counted=True)

    async def plan(there: Opened) -> FuzzPlan:
        told = Progress(there.board.around.clock, json).told
        with workplace(there.work, there.solver.name, "fuzzer") as folder:
            foresight = Foresight(there.solver, there.board, folder, told)
            return await stoppable(foresight.fuzz(commit, _budget_ms(budget)))

    if dry_run:
        _print_plan(run_step(solver, at, plan, dry_run=True), say_fuzz_plan, json)
        return
    print_fuzzed(run_step(solver, at, step), solver, json)


@fuzzer.command
def campaign(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    budget: Budget = None,
    until_bug: UntilBug = False,
    at: Place = HERE,
    json: Json = False,
) -> None:
    """Fuzz one commit that `select` told, without a change of the schedule."""

    async def step(there: Opened) -> FuzzReport:
        return await _fuzz(there, commit, budget, until_bug, json, counted=False)

    print_fuzzed(run_step(solver, at, step), solver, json)


@fuzz.command
def coverage(
    solver: SolverName,
    /,
    *,
    commit: Commit = None,
    shard: Annotated[
        str, Parameter(help="Map a part of the tests, such as 2/4; the last part merges all.")
    ] = "1/1",
    at: Place = HERE,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Map which tests reach which functions, from the newest coverage build."""

    part = parse_shard(shard)

    async def step(there: Opened) -> CoverageReport:
        progress = Progress(there.board.around.clock, json)
        with workplace(there.work, there.solver.name, "coverage") as folder, progress.moving():
            working = CoverageRole(
                there.solver, there.board, folder, progress.told, progress.mapped,
                cores_of(there.solver),
            )  # fmt: skip
            return await stoppable(working.run_once(commit, part))

    async def plan(there: Opened) -> CoveragePlan:
        with workplace(there.work, there.solver.name, "coverage") as folder:
            working = CoverageRole(there.solver, there.board, folder, cores=cores_of(there.solver))
            return await stoppable(working.foresee(commit, part))

    if dry_run:
        _print_plan(run_step(solver, at, plan, dry_run=True), say_coverage_plan, json)
        return
    report = run_step(solver, at, step)
    if json:
        print_json(report)
        return
    tests, functions = count_of(report.tests, "test"), count_of(report.functions, "function")
    say(f"{report.commit}: {functions} reached by {tests}")
    for trouble in report.troubles:
        say(f"  without coverage: {trouble}")
    if report.missing:
        say(f"  the map waits for the parts {', '.join(report.missing)}")


@fuzz.command(name="run")
def run_all(
    solver: SolverName,
    /,
    *,
    rounds: Annotated[int, Parameter(help="How many commits to fuzz.")] = 1,
    budget: Budget = None,
    until_bug: UntilBug = False,
    at: Place = HERE,
    json: Flag = False,
) -> None:
    """Do everything here, one after another: manager, builds, coverage map, fuzzing."""
    from windlass.cli.fuzz_everything import run_everything

    def fuzzed(report: FuzzReport) -> None:
        if not json:
            say_fuzzed(report, solver)

    async def step(there: Opened) -> list[FuzzReport]:
        progress = Progress(there.board.around.clock, json)
        everything = run_everything(there, progress, rounds, _budget_ms(budget), until_bug, fuzzed)
        return await stoppable(everything, GIVEN_BACK)

    reports = run_step(solver, at, step)
    if json:
        print_json(reports)


async def stoppable(work: Coroutine[Any, Any, T], left: str = "nothing was marked") -> T:
    """Let SIGTERM end the work in order: its programs are ended, and it is told what is `left`."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    told = False

    def stop() -> None:
        nonlocal told
        told = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        return await task
    except asyncio.CancelledError:
        if told:
            raise Conflict("stopped", f"stopped by SIGTERM; {left}") from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _fuzz(
    there: Opened, commit: str | None, budget: str | None, until_bug: bool, json: bool,
    *, counted: bool,
) -> FuzzReport:  # fmt: skip
    progress = Progress(there.board.around.clock, json)
    with workplace(there.work, there.solver.name, "fuzzer") as folder, progress.moving():
        working = Fuzzer(
            there.solver, there.board, folder, progress.told, progress.counted,
            until_bug=until_bug, budget_ms=_budget_ms(budget),
        )  # fmt: skip
        if counted:
            return await stoppable(working.run_once(commit), GIVEN_BACK)
        return await stoppable(working.campaign(await working.known(commit or "")))


def _budget_ms(budget: str | None) -> int:
    """0 stands for the solver's own."""
    return 0 if budget is None else parse_duration_ms(budget, "budget")


def _print_plan(plan: T, tell: Callable[[T], None], json: bool) -> None:
    if json:
        print_json(plan)
    else:
        tell(plan)

"""`windlass fuzz run`: every role in turn, on this machine and in this process."""

from collections.abc import Callable

from windlass.cli.fuzz_app import Opened
from windlass.cli.fuzz_progress import Progress
from windlass.cli.fuzz_reports import count_of
from windlass.domain.values.errors import WindlassError
from windlass.fuzzing.builder import Builder
from windlass.fuzzing.coverage.role import CoverageRole
from windlass.fuzzing.fuzzer import Fuzzer, FuzzReport, cores_of
from windlass.fuzzing.layout import coverage_key
from windlass.fuzzing.manager import Manager
from windlass.fuzzing.opening import open_commits
from windlass.fuzzing.workplace import workplace


async def run_everything(
    there: Opened,
    progress: Progress,
    rounds: int,
    budget_ms: int,
    until_bug: bool,
    fuzzed: Callable[[FuzzReport], None],
) -> list[FuzzReport]:
    """Look for commits, build all that wait, map coverage if there is no map, then fuzz.

    Without a map all tests are fuzzed from, so one that cannot be made stops nothing. `fuzzed`
    hears of each run when it ends.
    """
    await manage(there, progress)
    await build_all(there, progress)
    await manage(there, progress)
    if not await there.board.bucket.exists(coverage_key(there.solver.name)):
        try:
            await map_coverage(there, progress)
        except WindlassError as error:
            progress.told(f"no coverage map: {error}")
    reports = []
    for _ in range(rounds):
        report = await fuzz_one(there, progress, budget_ms, until_bug)
        reports.append(report)
        fuzzed(report)
        if report.outcome == "nothing" or (until_bug and report.findings):
            break
    return reports


async def manage(there: Opened, progress: Progress) -> None:
    """One run of the manager."""
    with workplace(there.work, there.solver.name, "manager") as folder:
        commits = open_commits(there.solver, folder, there.board.around)
        try:
            report = await Manager(there.board, commits, there.solver.commits).run_once()
        finally:
            await commits.close()
    if report.queued or report.scheduled:
        progress.told(f"manager: {len(report.queued)} queued, {len(report.scheduled)} scheduled")


async def build_all(there: Opened, progress: Progress) -> None:
    """Builders, until the queue is empty."""
    with workplace(there.work, there.solver.name, "builder") as folder:
        working = Builder(there.solver, there.board, folder, progress.told)
        while (report := await working.run_once()).outcome != "nothing":
            if report.outcome == "failed":
                progress.told(f"{report.commit}: {report.why}")


async def map_coverage(there: Opened, progress: Progress) -> None:
    """One run of the mapper."""
    with workplace(there.work, there.solver.name, "coverage") as folder, progress.moving():
        working = CoverageRole(
            there.solver, there.board, folder, progress.told, progress.mapped,
            cores_of(there.solver),
        )  # fmt: skip
        report = await working.run_once()
    tests, functions = count_of(report.tests, "test"), count_of(report.functions, "function")
    progress.told(f"coverage: {functions} reached by {tests}")


async def fuzz_one(
    there: Opened, progress: Progress, budget_ms: int, until_bug: bool
) -> FuzzReport:
    """One run of the fuzzer."""
    with workplace(there.work, there.solver.name, "fuzzer") as folder, progress.moving():
        working = Fuzzer(
            there.solver, there.board, folder, progress.told, progress.counted,
            budget_ms=budget_ms, until_bug=until_bug,
        )  # fmt: skip
        return await working.run_once()

"""`windlass fuzz run`: runs every role in turn, in this process."""

from collections.abc import Callable
from typing import NamedTuple

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.buckets.layout import coverage_key
from windlass_fuzz.cli.app import FuzzContext
from windlass_fuzz.cli.progress import Progress
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.processes.workspace import workspace
from windlass_fuzz.roles.builder import Builder
from windlass_fuzz.roles.coverage import CoverageRole
from windlass_fuzz.roles.engine_factory import cores_of
from windlass_fuzz.roles.fuzzer import Fuzzer, FuzzReport, RunBounds
from windlass_fuzz.roles.manager import Manager
from windlass_fuzz.sources.mirror import SubmoduleUnreachable
from windlass_fuzz.sources.open import open_commit_source


class Everything(NamedTuple):
    """The fuzzer's report, and the commits whose build failed."""

    reports: list[FuzzReport]
    failed: list[str]


async def run_everything(
    context: FuzzContext,
    progress: Progress,
    rounds: int,
    bounds: RunBounds,
    fuzzed: Callable[[FuzzReport], None],
) -> Everything:
    """Finds commits, builds all queued ones, maps coverage if there is no map, then fuzzes.

    If the coverage map cannot be made, fuzzing starts from all tests. `fuzzed` is called after each
    run.
    """
    await manage(context, progress)
    failed = await build_all(context, progress)
    await manage(context, progress)
    if not await context.pipeline.bucket.exists(coverage_key(context.solver.name)):
        try:
            await map_coverage(context, progress)
        except WindlassError as error:
            progress.notify(f"no coverage map: {error}")
    reports = []
    for _ in range(rounds):
        report = await fuzz_one(context, progress, bounds)
        if report.outcome == "nothing" and failed:
            report.why += f"; {count_of(len(failed), 'build')} failed"
        reports.append(report)
        fuzzed(report)
        if report.outcome == "nothing" or (bounds.until_bug and report.findings):
            break
    return Everything(reports, failed)


async def manage(context: FuzzContext, progress: Progress) -> None:
    """Runs the manager once."""
    with workspace(context.work, context.solver.name, "manager") as folder:
        commits = open_commit_source(context.solver, folder, context.pipeline.runtime)
        try:
            solver = context.solver
            role = Manager(context.pipeline, commits, solver.commits, solver.watched)
            report = await role.run_once()
        finally:
            await commits.close()
    if report.queued or report.scheduled:
        progress.notify(f"manager: {len(report.queued)} queued, {len(report.scheduled)} scheduled")


async def build_all(context: FuzzContext, progress: Progress) -> list[str]:
    """Runs the builder until the queue is empty, or has only commits that cannot be built now.

    Returns the commits whose build failed.
    """
    failed: list[str] = []
    name = context.solver.name
    with workspace(context.work, name, "builder") as folder:
        role = Builder(context.solver, context.pipeline, folder, progress.notify)
        postponed = 0
        while postponed < max(1, len((await context.pipeline.queue.read()).queue)):
            try:
                report = await role.run_once()
            except SubmoduleUnreachable as error:
                progress.notify(f"cannot be built now: {error}")
                postponed += 1
                continue
            if report.outcome == "nothing":
                break
            postponed = 0
            if report.outcome == "failed" and report.commit:
                failed.append(report.commit)
                log = f"windlass fuzz builder log {name} {report.commit}"
                progress.notify(f"{report.commit[:12]} could not be built: {report.why} ({log})")
    return failed


async def map_coverage(context: FuzzContext, progress: Progress) -> None:
    """Runs the coverage role once."""
    with workspace(context.work, context.solver.name, "coverage") as folder, progress.live():
        role = CoverageRole(
            context.solver, context.pipeline, folder, progress.notify, progress.mapping_progress,
            cores_of(context.solver),
        )  # fmt: skip
        report = await role.run_once()
    tests, functions = count_of(report.tests, "test"), count_of(report.functions, "function")
    progress.notify(f"coverage: {functions} reached by {tests}")


async def fuzz_one(context: FuzzContext, progress: Progress, bounds: RunBounds) -> FuzzReport:
    """Runs the fuzzer once."""
    with workspace(context.work, context.solver.name, "fuzzer") as folder, progress.live():
        role = Fuzzer(
            context.solver, context.pipeline, folder, progress.notify, progress.fuzzing_progress,
            budget_ms=bounds.budget_ms, until_bug=bounds.until_bug, quiet_ms=bounds.quiet_ms,
        )  # fmt: skip
        return await role.run_once()

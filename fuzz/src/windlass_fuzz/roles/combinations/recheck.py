"""Runs the inputs of known findings with the builds of a commit, without fuzzing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from windlass_fuzz.builds.build_cache import BuildCache, LocalBuild
from windlass_fuzz.config.combinations import Combination
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.signature import Signature
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.roles.combinations.combination_run import (
    MIN_MS,
    CombinationRun,
    RunSite,
    fix_search,
)
from windlass_fuzz.roles.engine_factory import EngineFactory, cores_of, fresh_folder
from windlass_fuzz.roles.findings_run import Examined, FindingsRun
from windlass_fuzz.roles.run_health import combinations_ready
from windlass_fuzz.roles.seed_runs import SeedRuns
from windlass_fuzz.roles.seed_selection import find_tests
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.pipeline import Pipeline

TESTS_TO_TRY: Final = 5


async def recheck_findings(
    solver: Solver, pipeline: Pipeline, work: Path, mirror: Mirror, commit: str,
    notify: Callable[[str], None], deadline_ms: int = 0, again: bool = True,
    unseen: bool = False, waiting: Sequence[Signature] = (),
) -> list[Finding]:  # fmt: skip
    """Closes findings that no combination of a commit shows any more; returns them.

    Unless it runs inputs `again`, those that have run with the commit are not run. Failures that
    are `waiting` for triage keep open what they may be, `unseen` inputs keep open everything.
    """
    ready, reasons = await combinations_ready(solver, pipeline, commit)
    deadline = deadline_ms or pipeline.now_ms() + solver.findings.triage_ms
    sources = work / "checkout"
    seen: Examined | None = None
    handling: FindingsRun | None = None
    runs: list[CombinationRun] = []
    for one in ready:
        builds = BuildCache(pipeline, fresh_folder(work / "builds"), one.name)
        build = await builds.fetch(commit)
        if build is None:
            reasons[one.name] = "its build is gone"
            continue
        works = solver.findings.refused_is_fixed and await _works(
            one, pipeline, work, mirror, commit, build
        )
        site = RunSite(pipeline, work, mirror, sources, commit, notify=notify)
        run = CombinationRun(one, site)
        runs.append(run)
        handling = run.findings(builds, None if seen is None else seen.known.catalogue)
        handling.again = again
        crashes = fresh_folder(work / "crashes")
        seen = await handling.examine(commit, build, crashes, deadline, works)
        await seen.triage.dating.date_again(commit)
    if seen is None or handling is None:
        return []
    catalogue = seen.known.catalogue
    catalogue.unseen |= unseen
    catalogue.waiting += waiting
    sighted = {one.key for one in catalogue.findings.values() if one.found_in == commit}
    closed = await seen.close_fixed(commit, sighted, reasons)
    await handling.date_on_branches(catalogue, deadline)
    await fix_search(runs, catalogue, deadline).run(closed)
    return closed


async def _works(
    one: Combination, pipeline: Pipeline, work: Path, mirror: Mirror, commit: str,
    build: LocalBuild,
) -> bool:  # fmt: skip
    """Returns whether a build runs one of its tests to an answer."""
    sources = work / "checkout"
    await mirror.checkout(commit, sources)
    tests = list(find_tests(sources, one.solver.tests).values())[:TESTS_TO_TRY]
    clock = pipeline.runtime.clock
    engine = EngineFactory(one.solver, pipeline, work, one.env).engine(build.folder)
    runs = SeedRuns(engine, fresh_folder(work / "crashes"), (), clock, clock.now_ms() + MIN_MS)
    return bool((await runs.run(tests, cores_of(one.solver))).tests_fine)

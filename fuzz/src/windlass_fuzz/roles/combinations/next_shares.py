"""What the next run will give to each combination, and why: the same division as in the run."""

import msgspec

from windlass_fuzz.config.combinations import combinations_of
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.roles.fuzzer import limits_of
from windlass_fuzz.roles.run_health import combinations_ready
from windlass_fuzz.state.leases import is_live
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.rules import Order
from windlass_fuzz.statistics.history import history_file
from windlass_fuzz.statistics.shares import divide


class NextShare(msgspec.Struct, frozen=True, kw_only=True):
    """The time that a combination gets in the next run; 0 if it cannot run, and why."""

    combination: str
    target: str
    engine: str
    ms: int
    percent: int
    why: str


class NextRun(msgspec.Struct, frozen=True, kw_only=True):
    """The next run: its commit, None if none is free, and its shares in the file's order."""

    commit: str | None
    fuzzing_ms: int
    shares: list[NextShare]


async def next_run(solver: Solver, pipeline: Pipeline, commit: str | None = None) -> NextRun | None:
    """Returns what the next run, or the run of a given commit, does with the combinations.

    Returns None without a matrix. Setup also takes time, equally from all.
    """
    if solver.matrix is None:
        return None
    commit = commit or await _next_commit(pipeline, solver.order)
    known = list(combinations_of(solver))
    ready, reasons = known, dict[str, str]()
    if commit is not None:
        ready, reasons = await combinations_ready(solver, pipeline, commit)
    limits = limits_of(solver.budget_ms, solver)
    fuzzing_ms = limits.budget_ms - limits.reserved_ms - limits.measuring_ms
    runs = (await history_file(pipeline).read()).runs
    given = {one.combination: one for one in divide(fuzzing_ms, [r.name for r in ready], runs)}
    shares = []
    for one in known:
        part = given.get(one.name)
        ms = 0 if part is None else part.ms
        shares.append(
            NextShare(
                combination=one.name, target=one.target, engine=one.engine, ms=ms,
                percent=round(100 * ms / max(fuzzing_ms, 1)),
                why=reasons[one.name] if part is None else part.why,
            )
        )  # fmt: skip
    return NextRun(commit=commit, fuzzing_ms=fuzzing_ms, shares=shares)


async def _next_commit(pipeline: Pipeline, first: Order) -> str | None:
    """Returns the least fuzzed commit that nobody is fuzzing."""
    leases = (await pipeline.leases.read()).fuzz
    now_ms = pipeline.now_ms()
    order = await pipeline.fuzzing_order(first)
    return next((one for one in order if not is_live(leases.get(one), now_ms)), None)

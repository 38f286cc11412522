"""The plans that `--dry-run` shows: what a builder or fuzzer would do, and why.

A plan runs the real steps on a bucket that discards writes; only the work between the steps is left
out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.quantities import format_moment
from windlass_fuzz.buckets.dry_run import DryRunBucket
from windlass_fuzz.buckets.layout import (
    KINDS,
    Kind,
    build_key,
    build_log_key,
    corpus_prefix,
    findings_prefix,
    state_key,
    statistics_prefix,
)
from windlass_fuzz.config.combinations import combinations_of
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.roles.build_steps import BuildSteps
from windlass_fuzz.roles.combinations.next_shares import NextRun, next_run
from windlass_fuzz.roles.corpus import Corpus
from windlass_fuzz.roles.engine_factory import cores_of, memory_of
from windlass_fuzz.roles.fuzz_steps import FuzzSteps
from windlass_fuzz.roles.fuzzer import Fuzzer, reserved_of
from windlass_fuzz.roles.seed_selection import SeedSelection, SeedSelector
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.built_combinations import BuiltCombinations, write_built
from windlass_fuzz.state.documents import Lease, Schedule
from windlass_fuzz.state.lease_keeper import LEASE_MS
from windlass_fuzz.state.leases import HeldLease, is_live
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.rules import MINIMUM, Order, branches_of, schedule_of
from windlass_fuzz.statistics.history import HISTORY

NAMED: Final = 5  # how many tests a plan names


class HeldByOther(msgspec.Struct, kw_only=True):
    """A commit that would come first but is skipped, because someone works on it."""

    commit: str
    holder: str
    until: str


class BuildPlan(msgspec.Struct, kw_only=True):
    """What a builder's run would do; `given_up` would move to `failed` without a build."""

    outcome: Literal["would build", "nothing"]
    commit: str | None = None
    why: str
    passed_over: list[HeldByOther] = []
    given_up: list[str] = []
    lease_ms: int = LEASE_MS
    attempt: int = 0
    attempts: int = 0
    commands: dict[Kind, tuple[str, ...]] = {}
    combinations: dict[str, tuple[str, ...]] = {}
    in_bucket: dict[Kind, bool] = {}
    timeout_ms: int = 0
    writes: list[str] = []


class FuzzPlan(msgspec.Struct, kw_only=True):
    """What a fuzzer's run would do; `removed` would leave the schedule because they have no binary.

    `fuzz_count_after` is None if the commit would leave the schedule once it is counted; `rule`
    says why it leaves or stays.
    """

    outcome: Literal["would fuzz", "nothing"]
    commit: str | None = None
    why: str
    passed_over: list[HeldByOther] = []
    removed: list[str] = []
    lease_ms: int = LEASE_MS
    in_bucket: dict[Kind, bool] = {}
    engine: str = ""
    tests: int = 0
    chosen_by: str = ""
    first_tests: list[str] = []
    corpus: int = 0
    budget_ms: int = 0
    reserved_ms: int = 0
    cores: int = 0
    memory: int = 0
    input_timeout_ms: int = 0
    rechecks: int = 0
    issues: str = ""
    fuzz_count: int = 0
    fuzz_count_after: int | None = None
    rule: str = ""
    writes: list[str] = []
    next_run: NextRun | None = None


@dataclass(slots=True)
class Planner:
    """Plans for one solver. It uses a workspace on this machine, as a run does."""

    solver: Solver
    pipeline: Pipeline
    work: Path
    notify: Callable[[str], None] = lambda _: None

    async def build(self, commit: str | None = None) -> BuildPlan:
        """Returns what the builder would do."""
        dry, pipeline = self._dry_run_pipeline()
        steps = BuildSteps(pipeline, self.solver.build.tries)
        mirror = self._mirror()
        if commit is not None:
            await mirror.fetch()
            commit = await mirror.require(commit)
            await steps.add(commit)
        queue = (await pipeline.queue.read()).queue
        leases = (await pipeline.leases.read()).build
        taken = await steps.take(LEASE_MS, commit)
        wanted = [c for c in queue if commit in (None, c)]
        plan = BuildPlan(
            outcome="nothing", why=_why_not_built(commit, bool(wanted)),
            given_up=list(taken.given_up),
            passed_over=self._held_by_others(wanted, leases, taken.held),
        )  # fmt: skip
        if taken.held is not None:
            await self._fill_build(plan, pipeline, steps, taken.held)
            first = f"the first of {len(queue)} in the queue"
            plan.why = "you named it" if commit else first + _free(plan.passed_over)
        plan.writes = dry.written
        return plan

    async def _fill_build(
        self, plan: BuildPlan, pipeline: Pipeline, steps: BuildSteps, held: HeldLease
    ) -> None:
        """Completes the plan as if both builds had succeeded."""
        build = self.solver.build
        plan.outcome, plan.commit = "would build", held.commit
        plan.attempt, plan.attempts = held.tries, build.tries
        plan.commands = {"production": build.production, "coverage": build.coverage}
        plan.combinations = {
            one.name: one.solver.build.production for one in combinations_of(self.solver)
            if one.name
        }  # fmt: skip
        plan.timeout_ms = build.timeout_ms
        plan.in_bucket = await _in_bucket(pipeline, held.commit)
        for one in combinations_of(self.solver):
            key = build_key(pipeline.solver, "production", held.commit, one.name)
            await pipeline.bucket.put(key, b"")
        await pipeline.bucket.put(build_key(pipeline.solver, "coverage", held.commit), b"")
        if pipeline.matrix:
            made = BuiltCombinations(built=pipeline.matrix)
            await write_built(pipeline.bucket, pipeline.solver, held.commit, made)
        await pipeline.bucket.put(build_log_key(pipeline.solver, held.commit), b"")
        await steps.mark_built(held.commit, held.token)

    async def fuzz(self, commit: str | None = None, budget_ms: int = 0) -> FuzzPlan:
        """Returns what the fuzzer would do."""
        dry, pipeline = self._dry_run_pipeline()
        steps = FuzzSteps(pipeline, self.solver)
        if commit is not None:
            commit = await Fuzzer(self.solver, pipeline, self.work, self.notify).resolve_built(
                commit
            )
            await steps.add(commit)
        order = await pipeline.fuzzing_order(self.solver.order)
        leases = (await pipeline.leases.read()).fuzz
        selected = await steps.select(LEASE_MS, commit)
        wanted = [c for c in order if commit in (None, c) and c not in selected.removed]
        plan = FuzzPlan(
            outcome="nothing", why=_why_not_fuzzed(commit, bool(wanted)),
            removed=list(selected.removed),
            passed_over=self._held_by_others(wanted, leases, selected.held),
        )  # fmt: skip
        if selected.held is not None:
            await self._fill_fuzz(plan, pipeline, steps, selected.held)
            plan.budget_ms = budget_ms or self.solver.budget_ms
            plan.reserved_ms = reserved_of(plan.budget_ms, self.solver)
            plan.why = "you named it" if commit else _why_chosen(plan, self.solver.order)
        plan.writes = dry.written + ([] if selected.held is None else self._more_writes())
        return plan

    async def _fill_fuzz(
        self, plan: FuzzPlan, pipeline: Pipeline, steps: FuzzSteps, held: HeldLease
    ) -> None:
        """Completes the plan as if the commit had been fuzzed."""
        plan.outcome, plan.commit = "would fuzz", held.commit
        known = combinations_of(self.solver)
        plan.engine = ", ".join(dict.fromkeys(one.engine for one in known))
        shared = dict.fromkeys(one.corpus for one in known)
        plan.in_bucket = await _in_bucket(pipeline, held.commit)
        plan.corpus = sum([await Corpus(pipeline, name).size() for name in shared])
        plan.next_run = await next_run(self.solver, self.pipeline, held.commit)
        plan.cores, plan.memory = cores_of(self.solver), memory_of(self.solver)
        plan.input_timeout_ms = self.solver.input_timeout_ms
        plan.issues = str(self.solver.issues.get("project", ""))
        stored = FindingStore(pipeline).all(self.notify)
        plan.rechecks = len([f async for f in stored if f.live])
        selection, names = await self._select_tests(pipeline, held.commit)
        plan.tests, plan.chosen_by, plan.first_tests = len(selection.tests), selection.why, names
        before = await pipeline.schedule.read()
        plan.fuzz_count = next(e.fuzz_count for e in before if e.hash == held.commit)
        counted = await steps.increment(held.commit, held.token)
        plan.fuzz_count_after = counted.fuzz_count
        plan.rule = _rule(before, held.commit)

    async def _select_tests(
        self, pipeline: Pipeline, commit: str
    ) -> tuple[SeedSelection, list[str]]:
        mirror = self._mirror()
        await mirror.fetch()
        sources = self.work / "checkout"
        await mirror.checkout(commit, sources)
        first = combinations_of(self.solver)[0]
        selector = SeedSelector(first.solver, pipeline, self.notify, first.names.target)
        selection = await selector.select(mirror, commit, sources)
        return selection, [p.relative_to(sources).as_posix() for p in selection.tests[:NAMED]]

    def _more_writes(self) -> list[str]:
        """Returns the folders of objects whose names are not known yet, and the history."""
        name = self.solver.name
        folders = (corpus_prefix(name), statistics_prefix(name), findings_prefix(name))
        return [*(f"{folder}/" for folder in folders), state_key(name, HISTORY.file)]

    def _held_by_others(
        self, wanted: list[str], leases: Mapping[str, Lease], held: HeldLease | None
    ) -> list[HeldByOther]:
        """Returns the commits before the taken one that others hold."""
        now_ms = self.pipeline.now_ms()
        before = wanted if held is None else wanted[: wanted.index(held.commit)]
        return [
            HeldByOther(commit=c, holder=leases[c].holder, until=format_moment(leases[c].until_ms))
            for c in before
            if is_live(leases.get(c), now_ms)
        ]

    def _dry_run_pipeline(self) -> tuple[DryRunBucket, Pipeline]:
        """Returns the same state on a bucket that discards writes."""
        dry = DryRunBucket(self.pipeline.bucket)
        known = self.pipeline
        return dry, Pipeline(dry, known.solver, known.runtime, known.holder, known.matrix)

    def _mirror(self) -> Mirror:
        return Mirror(self.solver.repository, self.work / "mirror.git")


async def _in_bucket(pipeline: Pipeline, commit: str) -> dict[Kind, bool]:
    return {kind: await pipeline.has_build(commit, (kind,)) for kind in KINDS}


def _free(passed_over: list[HeldByOther]) -> str:
    return " that is free" if passed_over else ""


def _why_not_built(commit: str | None, waiting: bool) -> str:
    if commit is not None:
        return f"another builder is building {commit}"
    return "every commit in the queue is being built" if waiting else "the queue is empty"


def _why_not_fuzzed(commit: str | None, waiting: bool) -> str:
    if commit is not None:
        return f"another fuzzer is fuzzing {commit}"
    if waiting:
        return "every commit in the schedule is being fuzzed"
    return "the schedule is empty, or none of its commits has a binary"


def _why_chosen(plan: FuzzPlan, order: Order) -> str:
    times = {0: "never", 1: "once"}.get(plan.fuzz_count, f"{plan.fuzz_count} times")
    return f"the least fuzzed{_free(plan.passed_over)} ({times} so far), the {order} of equals"


def _rule(before: Schedule, commit: str) -> str:
    """Explains why the commit stays in the schedule of each branch or leaves it once counted."""
    entry = next(entry for entry in before if entry.hash == commit)
    said = [
        f"the schedule{f' of {branch}' if branch else ''} has "
        + _rule_of(schedule_of(before, branch), commit)
        for branch in branches_of(entry)
    ]
    return "; ".join(said)


def _rule_of(own: Schedule, commit: str) -> str:
    if len(own) <= MINIMUM:
        return f"{len(own)} commits, which is not more than {MINIMUM}"
    counts = {e.hash: e.fuzz_count + (e.hash == commit) for e in own}
    often = [c for c, count in counts.items() if count > 1]
    if often:
        return f"{len(own)} commits, but {often[0][:12]} was fuzzed twice"
    return f"{len(own)} commits, more than {MINIMUM}, and none was fuzzed twice"

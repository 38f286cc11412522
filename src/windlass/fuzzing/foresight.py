"""What a builder, fuzzer or mapper would do, and why: the plans that `--dry-run` shows.

Nothing is guessed: the very steps of a run are taken, on a bucket that keeps writes to itself.
Only the work between the steps is left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.times import format_moment
from windlass.fuzzing.board import Board
from windlass.fuzzing.bucket_dry import DryBucket
from windlass.fuzzing.checkout import Mirror
from windlass.fuzzing.choosing import Chooser, Chosen
from windlass.fuzzing.corpus import Corpus
from windlass.fuzzing.findings.shelf import Shelf
from windlass.fuzzing.fuzzer import Fuzzer, cores_of, memory_of, reserved_of
from windlass.fuzzing.holding import LEASE_MS
from windlass.fuzzing.layout import (
    KINDS,
    Kind,
    build_key,
    build_log_key,
    corpus_prefix,
    findings_prefix,
    statistics_prefix,
)
from windlass.fuzzing.leases import Held, is_live
from windlass.fuzzing.rules import MINIMUM, fuzzing_order
from windlass.fuzzing.solver import Solver
from windlass.fuzzing.state import Lease, Schedule
from windlass.fuzzing.steps_build import BuildSteps
from windlass.fuzzing.steps_fuzz import FuzzSteps

NAMED: Final = 5  # tests that a plan names


class Passed(msgspec.Struct, kw_only=True):
    """A commit that comes first and is passed over, because somebody works on it."""

    commit: str
    holder: str
    until: str


class BuildPlan(msgspec.Struct, kw_only=True):
    """What a run of the builder would do; `given_up` would go to `failed` unbuilt."""

    outcome: Literal["would build", "nothing"]
    commit: str | None = None
    why: str
    passed_over: list[Passed] = []
    given_up: list[str] = []
    lease_ms: int = LEASE_MS
    attempt: int = 0
    attempts: int = 0
    commands: dict[Kind, tuple[str, ...]] = {}
    in_bucket: dict[Kind, bool] = {}
    timeout_ms: int = 0
    writes: list[str] = []


class FuzzPlan(msgspec.Struct, kw_only=True):
    """What a run of the fuzzer would do; `removed` would leave the schedule for their binaries.

    `fuzz_count_after` is None if the commit would leave the schedule when it is counted, and
    `rule` says why, or why not.
    """

    outcome: Literal["would fuzz", "nothing"]
    commit: str | None = None
    why: str
    passed_over: list[Passed] = []
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


@dataclass(slots=True)
class Foresight:
    """Plans for one solver; of this machine it uses a working folder, as a run does."""

    solver: Solver
    board: Board
    work: Path
    told: Callable[[str], None] = lambda _: None

    async def build(self, commit: str | None = None) -> BuildPlan:
        """What the builder would do."""
        dry, board = self._apart()
        steps = BuildSteps(board, self.solver.build.tries)
        mirror = self._mirror()
        if commit is not None:
            await mirror.fetch()
            commit = await mirror.require(commit)
            await steps.add(commit)
        queue = (await board.queue.read()).queue
        leases = (await board.leases.read()).build
        took = await steps.take(LEASE_MS, commit)
        wanted = [c for c in queue if commit in (None, c)]
        plan = BuildPlan(
            outcome="nothing", why=_why_not_built(commit, bool(wanted)),
            given_up=list(took.given_up), passed_over=self._passed(wanted, leases, took.held),
        )  # fmt: skip
        if took.held is not None:
            await self._fill_build(plan, board, steps, took.held)
            given = "it was named" if commit else f"the first of {len(queue)} in the queue"
            plan.why = given + ("" if commit else _that("nobody builds", plan.passed_over))
        plan.writes = dry.written
        return plan

    async def _fill_build(
        self, plan: BuildPlan, board: Board, steps: BuildSteps, held: Held
    ) -> None:
        """As if both builds had been made."""
        build = self.solver.build
        plan.outcome, plan.commit = "would build", held.commit
        plan.attempt, plan.attempts = held.tries, build.tries
        plan.commands = {"production": build.production, "coverage": build.coverage}
        plan.timeout_ms = build.timeout_ms
        plan.in_bucket = await _in_bucket(board, held.commit)
        for kind in KINDS:
            await board.bucket.put(build_key(board.solver, kind, held.commit), b"")
        await board.bucket.put(build_log_key(board.solver, held.commit), b"")
        await steps.mark_built(held.commit, held.token)

    async def fuzz(self, commit: str | None = None, budget_ms: int = 0) -> FuzzPlan:
        """What the fuzzer would do."""
        dry, board = self._apart()
        steps = FuzzSteps(board)
        if commit is not None:
            commit = await Fuzzer(self.solver, board, self.work, self.told).known(commit)
            await steps.add(commit)
        order = fuzzing_order(await board.schedule.read())
        leases = (await board.leases.read()).fuzz
        selected = await steps.select(LEASE_MS, commit)
        wanted = [c for c in order if commit in (None, c) and c not in selected.removed]
        plan = FuzzPlan(
            outcome="nothing", why=_why_not_fuzzed(commit, bool(wanted)),
            removed=list(selected.removed), passed_over=self._passed(wanted, leases, selected.held),
        )  # fmt: skip
        if selected.held is not None:
            await self._fill_fuzz(plan, board, steps, selected.held)
            plan.budget_ms = budget_ms or self.solver.budget_ms
            plan.reserved_ms = reserved_of(plan.budget_ms)
            plan.why = "it was named" if commit else _why_chosen(plan)
        plan.writes = dry.written + ([] if selected.held is None else self._more_writes())
        return plan

    async def _fill_fuzz(self, plan: FuzzPlan, board: Board, steps: FuzzSteps, held: Held) -> None:
        """As if it had been fuzzed."""
        plan.outcome, plan.commit = "would fuzz", held.commit
        plan.engine = str(self.solver.engine["name"])
        plan.in_bucket = await _in_bucket(board, held.commit)
        plan.corpus = await Corpus(board).size()
        plan.cores, plan.memory = cores_of(self.solver), memory_of(self.solver)
        plan.input_timeout_ms = self.solver.input_timeout_ms
        plan.issues = str(self.solver.issues.get("project", ""))
        known = Shelf(board).all(self.told)
        plan.rechecks = len([f async for f in known if f.state == "open"])
        chosen, names = await self._choose(board, held.commit)
        plan.tests, plan.chosen_by, plan.first_tests = len(chosen.tests), chosen.why, names
        before = await board.schedule.read()
        plan.fuzz_count = next(e.fuzz_count for e in before if e.hash == held.commit)
        counted = await steps.increment(held.commit, held.token)
        plan.fuzz_count_after = counted.fuzz_count
        plan.rule = _rule(before, held.commit)

    async def _choose(self, board: Board, commit: str) -> tuple[Chosen, list[str]]:
        mirror = self._mirror()
        await mirror.fetch()
        sources = self.work / "checkout"
        await mirror.checkout(commit, sources)
        chosen = await Chooser(self.solver, board, self.told).choose(mirror, commit, sources)
        return chosen, [p.relative_to(sources).as_posix() for p in chosen.tests[:NAMED]]

    def _more_writes(self) -> list[str]:
        """What depends on what is found: whole folders, for the names are not known yet."""
        name = self.solver.name
        folders = (corpus_prefix(name), statistics_prefix(name), findings_prefix(name))
        return [f"{folder}/" for folder in folders]

    def _passed(
        self, wanted: list[str], leases: Mapping[str, Lease], held: Held | None
    ) -> list[Passed]:
        """Those before the one that was taken that are somebody else's."""
        now_ms = self.board.now_ms()
        before = wanted if held is None else wanted[: wanted.index(held.commit)]
        return [
            Passed(commit=c, holder=leases[c].holder, until=format_moment(leases[c].until_ms))
            for c in before
            if is_live(leases.get(c), now_ms)
        ]

    def _apart(self) -> tuple[DryBucket, Board]:
        """The same state, on a bucket that keeps writes to itself, whatever ours does."""
        dry = DryBucket(self.board.bucket)
        return dry, Board(dry, self.board.solver, self.board.around, self.board.holder)

    def _mirror(self) -> Mirror:
        return Mirror(self.solver.repository, self.work / "mirror.git")


async def _in_bucket(board: Board, commit: str) -> dict[Kind, bool]:
    return {kind: await board.has_build(commit, (kind,)) for kind in KINDS}


def _that(nobody: str, passed_over: list[Passed]) -> str:
    return f" that {nobody}" if passed_over else ""


def _why_not_built(commit: str | None, waiting: bool) -> str:
    if commit is not None:
        return f"somebody else builds {commit}"
    return "somebody builds each commit of the queue" if waiting else "nothing waits in the queue"


def _why_not_fuzzed(commit: str | None, waiting: bool) -> str:
    if commit is not None:
        return f"somebody else fuzzes {commit}"
    if waiting:
        return "somebody fuzzes each commit of the schedule"
    return "the schedule is empty, or the binaries of all its commits are gone"


def _why_chosen(plan: FuzzPlan) -> str:
    times = {0: "never", 1: "once"}.get(plan.fuzz_count, f"{plan.fuzz_count} times")
    free = _that("nobody fuzzes", plan.passed_over)
    return f"the least fuzzed{free} ({times} so far), the oldest of equals"


def _rule(before: Schedule, commit: str) -> str:
    """Why the commit stays in the schedule once it is counted, or goes."""
    if len(before) <= MINIMUM:
        return f"the schedule has {len(before)}, and nothing goes from {MINIMUM} or fewer"
    counts = {e.hash: e.fuzz_count + (e.hash == commit) for e in before}
    often = [c for c, count in counts.items() if count > 1]
    if often:
        return f"the schedule has {len(before)}, but {often[0][:12]} was fuzzed more than once"
    return f"the schedule has {len(before)}, more than {MINIMUM}, and none was fuzzed twice"

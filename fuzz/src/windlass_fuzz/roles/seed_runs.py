"""Runs tests and corpus unmodified, before anything is mutated: what fails is a finding."""

import hashlib
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from windlass.ports.clock import Clock
from windlass_fuzz.buckets.layout import plain_ending
from windlass_fuzz.config.finding_settings import FailureKind, may_be_finding
from windlass_fuzz.engines.engine import Engine, Statistics, Verdict
from windlass_fuzz.engines.tool_runner import run_concurrently


@dataclass(slots=True)
class SeedRuns:
    """Runs inputs with one build until the time is over; failing ones go to `crashes`.

    `on_failure` gets those that fail or exceed a limit, whether that is reported or not.
    """

    engine: Engine
    crashes: Path
    kinds: Collection[FailureKind]
    clock: Clock
    until_ms: int
    on_failure: Callable[[Path], None] = lambda _: None

    async def run(self, tests: Sequence[Path], cores: int) -> Statistics:
        """Runs the tests in the given order, some at a time."""
        count = Statistics()
        waiting = list(reversed(tests))

        async def work() -> None:
            while waiting and (self.clock.now_ms() < self.until_ms or not count.tests):
                path = waiting.pop()
                self._note(count, path, await self.engine.classify(path))

        await run_concurrently(work() for _ in range(max(min(cores, len(waiting)), 1)))
        return count

    def _note(self, count: Statistics, path: Path, verdict: Verdict) -> None:
        count.executions += 1
        count.tests += 1
        count.tests_fine += verdict.kind == "fine"
        count.bugs += verdict.kind == "bug"
        count.unsupported += verdict.kind == "unsupported"
        count.timeouts += verdict.kind == "timeout"
        count.memory += verdict.kind == "memory"
        if verdict.kind in ("bug", "timeout", "memory"):
            self.on_failure(path)
        if verdict.kind == "bug" or may_be_finding(verdict.kind, self.kinds):
            name = hashlib.sha256(path.read_bytes()).hexdigest()[:32]
            shutil.copyfile(path, self.crashes / f"test-{name}{plain_ending(path.name)}")


def added(count: Statistics, more: Statistics) -> Statistics:
    """Returns the sum of two counts; notes and coverage are those of the second."""
    return Statistics(
        executions=count.executions + more.executions, tests=count.tests + more.tests,
        tests_fine=count.tests_fine + more.tests_fine, bugs=count.bugs + more.bugs,
        unsupported=count.unsupported + more.unsupported, timeouts=count.timeouts + more.timeouts,
        memory=count.memory + more.memory, new_inputs=count.new_inputs + more.new_inputs,
        seconds=count.seconds + more.seconds, note=more.note or count.note,
        coverage=max(count.coverage, more.coverage),
    )  # fmt: skip

"""`libfuzzer`: fuzzes targets built with `clang -fsanitize=fuzzer`, with their own driver.

The driver forks once per core, continues after a crash, and limits time and memory per input.
"""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from windlass_fuzz.engines.engine import (
    Campaign,
    EngineFailed,
    Statistics,
    Target,
    Verdict,
    bug_verdict,
    find_binary,
    parse_options,
)
from windlass_fuzz.engines.frames import frames_in, own_stack
from windlass_fuzz.engines.sanitizers import report_before_limit, sanitizer_report
from windlass_fuzz.engines.signature import crashed, signature_of
from windlass_fuzz.engines.tool_runner import ToolRunner, last_line
from windlass_fuzz.processes.runner import MIB, SMALL_PARENT, ExitStatus, Limits

SLACK_MS: Final = 30_000  # how much longer than its time limit the driver may run
LOG: Final = 16 * MIB  # a target that keeps crashing writes far more in a long run
_STATUS: Final = re.compile(
    r"^#(\d+): cov: (\d+) .* oom/timeout/crash: (\d+)/(\d+)/(\d+)", re.MULTILINE
)
STARTED: Final = "Running: "  # the driver's own messages before and after an input
EXECUTED: Final = "Executed "
TIMEOUT_CODE: Final = 70
MEMORY_CODE: Final = 71


class LibFuzzerOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`binary` is the target among the build's files; `flags` are passed to it unchanged."""

    binary: str
    flags: list[str] = []
    dictionary: str = ""


class LibFuzzerEngine:
    """The engine for libFuzzer targets."""

    options_type = LibFuzzerOptions
    counts_coverage = True

    def __init__(self, target: Target) -> None:
        self._target = target
        self._options = parse_options(target, LibFuzzerOptions)
        self._binary = find_binary(target, self._options.binary)
        self._driver = [*SMALL_PARENT, str(self._binary)]
        self._tools = ToolRunner(target)

    def command(self, path: Path) -> list[str]:
        return [str(self._binary), str(path)]

    async def classify(self, path: Path) -> Verdict:
        argv = [*self._driver, *self._limit_flags(), "-runs=1", str(path)]
        limits = Limits(self._target.input_timeout_ms + 5_000, memory=self._target.memory * 2)
        ended, output, errors = await self._tools.run_target(argv, limits)
        slow = ended.reason in {"timeout", "output"} or ended.code == TIMEOUT_CODE
        large = ended.reason == "memory" or ended.code == MEMORY_CODE
        report = sanitizer_report(errors)
        if (slow or large) and report_before_limit(errors) is None:
            frames = frames_in(report.text) if slow and report is not None else []
            stack = own_stack(frames, self._target.signature, overflow=False)
            return Verdict("timeout" if slow else "memory", output=output, frames=stack)
        if report is None and STARTED not in errors and not crashed(ended):
            return Verdict("unsupported", output=output)  # no driver, or a library is missing
        if report is None and ended.ok:
            return Verdict("fine" if EXECUTED in errors else "unsupported", output=output)
        data = path.read_bytes()
        found = signature_of(
            output, ended, self._target.signature, errors, data, self._tools.program
        )
        return bug_verdict(found, output)

    async def stack(self, path: Path) -> tuple[str, ...]:  # noqa: ARG002
        """Returns nothing: the driver's own report names the functions."""
        return ()

    async def fuzz(self, campaign: Campaign) -> Statistics:
        """Runs the target in fork mode, with the seeds in a separate folder."""
        seeds = self._tools.folder("seeds")
        for number, path in enumerate(campaign.seeds):
            shutil.copyfile(path, seeds / f"{number:06d}-{path.name}")
        before, broken = len(os.listdir(campaign.corpus)), len(os.listdir(campaign.crashes))
        seconds = max(campaign.budget_ms // 1000, 1)
        flags = [
            f"-fork={campaign.cores}", f"-ignore_crashes={int(not campaign.until_bug)}",
            "-ignore_ooms=1",
            "-ignore_timeouts=1", f"-max_total_time={seconds}",
            f"-artifact_prefix={campaign.crashes}/", *self._limit_flags(),
            *self._flags(campaign.dictionary),
            str(campaign.corpus), str(seeds),
        ]  # fmt: skip
        count = Statistics()

        def on_output(output: str) -> None:
            nonlocal count
            newer = _statistics(output)
            if newer.executions > count.executions:
                count = newer
                campaign.on_progress(count)

        memory = self._target.memory * (campaign.cores + 2)
        limits = Limits(seconds * 1000 + SLACK_MS, memory=memory, output=LOG, rolling=True)
        ended, output = await self._tools.run([*self._driver, *flags], limits, on_output=on_output)
        on_output(output)
        count.seconds = ended.took_ms / 1000
        count.new_inputs = max(len(os.listdir(campaign.corpus)) - before, 0)
        if count.executions == 0:
            # An input that fails before the driver counts any is proof that it fuzzes.
            count.executions = count.bugs = len(os.listdir(campaign.crashes)) - broken
        if count.executions == 0:
            raise EngineFailed(f"{self._options.binary} did not fuzz: {_complaint(output)}")
        campaign.on_progress(count)
        return count

    async def shrink(self, path: Path, into: Path, budget_ms: int) -> bool:
        """Runs `-minimize_crash`, which needs a time limit."""
        seconds = max(budget_ms // 1000, 1)
        shutil.copyfile(path, into)
        flags = ["-minimize_crash=1", f"-max_total_time={seconds}", *self._limit_flags()]
        await self._run(
            [*flags, f"-exact_artifact_path={into}", str(path)], seconds * 1000 + SLACK_MS
        )
        return into.stat().st_size < path.stat().st_size

    async def prune(self, corpus: Path, into: Path, budget_ms: int) -> bool:
        """Runs `-merge`, which keeps the smallest inputs that add coverage."""
        ended, _ = await self._run(
            ["-merge=1", *self._limit_flags(), str(into), str(corpus)], budget_ms
        )
        return ended.ok

    def _limit_flags(self) -> list[str]:
        timeout = max(self._target.input_timeout_ms // 1000, 1)
        return [f"-rss_limit_mb={self._target.memory // MIB}", f"-timeout={timeout}"]

    def _flags(self, words: Path | None) -> list[str]:
        """Returns the dictionary and the flags; libFuzzer reads one dictionary only."""
        if words is None and self._options.dictionary:
            words = self._target.binaries / self._options.dictionary
        given = [] if words is None else [f"-dict={words}"]
        return [*given, *self._options.flags]

    async def _run(self, flags: Sequence[str], timeout_ms: int) -> tuple[ExitStatus, str]:
        limits = Limits(timeout_ms, memory=self._target.memory * 2)
        return await self._tools.run([*self._driver, *flags], limits)


def _complaint(output: str) -> str:
    """Returns what the driver complains about; its last line only says that it exits."""
    errors = [line for line in output.splitlines() if "ERROR:" in line]
    return last_line(errors[-1] if errors else output)


def _statistics(output: str) -> Statistics:
    found = _STATUS.findall(output)
    if not found:
        return Statistics()
    executions, coverage, memory, timeouts, bugs = (int(number) for number in found[-1])
    return Statistics(
        executions=executions, coverage=coverage, memory=memory, timeouts=timeouts, bugs=bugs
    )

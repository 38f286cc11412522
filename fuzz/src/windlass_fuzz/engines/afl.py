"""`afl`: fuzzes targets built with `afl-cc` or `afl-clang-fast`, one `afl-fuzz` per core.

One main instance and a secondary instance per further core share a folder. Crashes are copied out
of it while they run, so that a killed run loses none; new inputs are copied at the end.
"""

import asyncio
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from windlass_fuzz.engines.debugger import stack_of
from windlass_fuzz.engines.engine import (
    Campaign,
    EngineFailed,
    Statistics,
    Target,
    Verdict,
    bug_verdict,
    fill_placeholders,
    parse_options,
)
from windlass_fuzz.engines.sanitizers import report_before_limit, report_of_run
from windlass_fuzz.engines.signature import crashed, prints_usage, signature_of
from windlass_fuzz.engines.tool_runner import ToolRunner, files_in, last_line
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.processes.runner import MIB, ExitStatus, Limits

SLACK_MS: Final = 30_000
# No user interface, no checks of the machine's settings, no CPU pinning.
VARIABLES: Final = {
    "AFL_NO_UI": "1",
    "AFL_SKIP_CPUFREQ": "1",
    "AFL_NO_AFFINITY": "1",
    "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",
    "AFL_FORKSRV_INIT_TMOUT": "30000",
}


UNTIL_BUG: Final = {"AFL_BENCH_UNTIL_CRASH": "1"}


class AflOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`argv` is the target, with `@@` for its input; `flags` go to afl-fuzz.

    Set `memory_bound: false` for targets with sanitizers, which map more memory than they use.
    """

    argv: list[str]
    flags: list[str] = []
    memory_bound: bool = True


class AflEngine:
    """The engine for AFL++."""

    options_type = AflOptions
    counts_coverage = True

    def __init__(self, target: Target) -> None:
        self._target = target
        self._options = parse_options(target, AflOptions)
        self._tools = ToolRunner(target)

    def command(self, path: Path) -> list[str]:
        return [word.replace("@@", str(path)) for word in self._argv()]

    async def classify(self, path: Path) -> Verdict:
        memory = self._target.memory
        space = memory if self._options.memory_bound else 0
        limits = Limits(self._target.input_timeout_ms, memory=memory, address_space=space)
        ended, output, errors = await self._tools.run_target(self.command(path), limits, VARIABLES)
        report = report_of_run(output, errors, failed=ended.code != 0)
        if ended.reason != "exited":
            report = report_before_limit(errors)
        if report is None and ended.reason in {"timeout", "output"}:
            return Verdict("timeout", output=output)
        if (report is None and ended.reason == "memory") or (report and report.kind == "memory"):
            return Verdict("memory", output=output)
        if crashed(ended) or report is not None:
            data = path.read_bytes()
            found = signature_of(
                output, ended, self._target.signature, errors, data, self._tools.program
            )
            return bug_verdict(found, output)
        fine = ended.code == 0 and not prints_usage(output, path.read_bytes())
        return Verdict("fine" if fine else "unsupported", output=output)

    async def stack(self, path: Path) -> tuple[str, ...]:
        """Runs the input again in a debugger."""
        timeout = self._target.input_timeout_ms
        return await stack_of(self._tools, self.command(path), timeout, self._target.signature)

    async def fuzz(self, campaign: Campaign) -> Statistics:
        shared = self._tools.folder("afl")
        seeds = self._seeds(campaign)
        limits = Limits(
            campaign.budget_ms + SLACK_MS, memory=self._target.memory * 2, rolling=True,
            grace_ms=10_000,
        )  # fmt: skip
        roles = ["-M", *["-S"] * (campaign.cores - 1)]
        variables = UNTIL_BUG if campaign.until_bug else {}

        failures = _Failures(shared, campaign)

        def on_output(_: str) -> None:
            failures.collect()
            campaign.on_progress(_statistics(shared))

        try:
            ends = await asyncio.gather(
                *(
                    self._run(
                        self._fuzz_argv(seeds, shared, f"core{n}", role, campaign), limits,
                        variables, None if n else on_output,
                    )
                    for n, role in enumerate(roles)
                )
            )  # fmt: skip
        finally:
            failures.collect()
        count = _statistics(shared)
        count.seconds = max(ended.took_ms for ended, _ in ends) / 1000
        count.new_inputs = sum(
            _copy(path, campaign.corpus, "") for path in shared.glob("*/queue/id*")
        )
        if count.executions == 0:
            raise EngineFailed(f"afl-fuzz did not fuzz: {last_line(ends[0][1])}")
        campaign.on_progress(count)
        return count

    async def shrink(self, path: Path, into: Path, budget_ms: int) -> bool:
        argv = ["afl-tmin", "-i", str(path), "-o", str(into), *self._limits(), "--", *self._argv()]
        ended, _ = await self._run(argv, Limits(budget_ms))
        return ended.ok and into.exists() and into.stat().st_size < path.stat().st_size

    async def prune(self, corpus: Path, into: Path, budget_ms: int) -> bool:
        """Runs `afl-cmin`, which insists on creating its output folder."""
        made = self._target.scratch / "cmin"
        shutil.rmtree(made, ignore_errors=True)
        argv = ["afl-cmin", "-i", str(corpus), "-o", str(made), *self._limits(), "--"]
        ended, _ = await self._run([*argv, *self._argv()], Limits(budget_ms))
        if not ended.ok:
            return False
        shutil.copytree(made, into, dirs_exist_ok=True)
        return any(into.iterdir())

    def _argv(self) -> list[str]:
        return fill_placeholders(self._options.argv, self._target)

    def _limits(self) -> list[str]:
        memory = str(self._target.memory // MIB) if self._options.memory_bound else "none"
        return ["-m", memory, "-t", str(self._target.input_timeout_ms)]

    def _fuzz_argv(
        self, seeds: Path, shared: Path, name: str, role: str, campaign: Campaign
    ) -> list[str]:
        seconds = max(campaign.budget_ms // 1000, 1)
        flags = fill_placeholders(self._options.flags, self._target)
        words = [] if campaign.dictionary is None else ["-x", str(campaign.dictionary)]
        return [
            "afl-fuzz", role, name, "-i", str(seeds), "-o", str(shared), "-V", str(seconds),
            *self._limits(), *words, *flags, "--", *self._argv(),
        ]  # fmt: skip

    def _seeds(self, campaign: Campaign) -> Path:
        """Copies the seeds without empty files: afl-fuzz refuses a folder with only empty files."""
        seeds = self._tools.folder("seeds")
        for path in [*campaign.seeds, *files_in(campaign.corpus)]:
            if path.stat().st_size:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
                shutil.copyfile(path, seeds / digest)
        if not any(seeds.iterdir()):
            (seeds / "empty").write_bytes(b"0")
        return seeds

    async def _run(
        self,
        argv: Sequence[str],
        limits: Limits,
        variables: Mapping[str, str] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> tuple[ExitStatus, str]:
        if argv[0].startswith("afl-") and shutil.which(argv[0]) is None:
            message = f"{argv[0]} is not installed; install the package afl++"
            raise InvalidSetting("engine", message, argv[0])
        return await self._tools.run(argv, limits, VARIABLES | dict(variables or {}), on_output)


def _statistics(shared: Path) -> Statistics:
    """Returns the sum over all instances."""
    count = Statistics()
    for path in shared.glob("*/fuzzer_stats"):
        lines = (line.partition(":") for line in path.read_text().splitlines())
        values = {name.strip(): value.strip() for name, _, value in lines}
        count.executions += int(values.get("execs_done", 0))
        count.bugs += int(values.get("saved_crashes", 0))
        count.timeouts += int(values.get("saved_hangs", 0))
        count.coverage = max(count.coverage, int(values.get("edges_found", -1)))
    return count


class _Failures:
    """Copies failing inputs out of AFL's folders, each content once.

    A file that AFL was still writing has another size the next time, and is copied again.
    """

    def __init__(self, shared: Path, campaign: Campaign) -> None:
        slow = {"timeout", "hang"} & set(campaign.kinds)
        self._folders = ("crashes", "hangs") if slow else ("crashes",)
        self._shared = shared
        self._into = campaign.crashes
        self._copied: set[tuple[Path, int]] = set()

    def collect(self) -> None:
        """Copies what is new since the last call."""
        for path in (path for name in self._folders for path in self._shared.glob(f"*/{name}/id*")):
            found = (path, path.stat().st_size)
            if found not in self._copied:
                _copy(path, self._into, "crash-")
                self._copied.add(found)


def _copy(path: Path, folder: Path, start: str) -> int:
    target = folder / f"{start}{hashlib.sha256(path.read_bytes()).hexdigest()[:32]}"
    if target.exists():
        return 0
    shutil.copyfile(path, target)
    return 1

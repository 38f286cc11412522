"""`afl`: targets built with `afl-cc` or `afl-clang-fast`, by `afl-fuzz` on every core.

One main instance and a secondary one for each further core share a folder. What they
leave there is read when they have ended.
"""

import asyncio
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.fuzzing.engines.engine import (
    Campaign,
    EngineFailed,
    Statistics,
    Target,
    Verdict,
    filled,
    options_of,
)
from windlass.fuzzing.engines.workbench import Workbench, files_in, last_words
from windlass.fuzzing.findings.signature import crashed, title_of
from windlass.fuzzing.processes import MIB, Bounds, Ended

SLACK_MS: Final = 30_000
# No screen, no questions about the machine's settings, no core of its own to sit on.
VARIABLES: Final = {
    "AFL_NO_UI": "1",
    "AFL_SKIP_CPUFREQ": "1",
    "AFL_NO_AFFINITY": "1",
    "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",
    "AFL_FORKSRV_INIT_TMOUT": "30000",
}


UNTIL_BUG: Final = {"AFL_BENCH_UNTIL_CRASH": "1"}


class AflOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`argv` is the target, `@@` its input; `flags` go to afl-fuzz, such as `-x DICTIONARY`.

    `memory_bound: false` is for targets with sanitizers, which map more than they use.
    """

    argv: list[str]
    flags: list[str] = []
    memory_bound: bool = True


class AflEngine:
    """An engine over the programs of AFL++."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._options = options_of(target, AflOptions)
        self._bench = Workbench(target)

    def command(self, path: Path) -> list[str]:
        return [word.replace("@@", str(path)) for word in self._argv()]

    async def judge(self, path: Path) -> Verdict:
        memory = self._target.memory
        space = memory if self._options.memory_bound else 0
        bounds = Bounds(self._target.input_timeout_ms, memory=memory, address_space=space)
        ended, output = await self._run(self.command(path), bounds)
        if ended.reason in {"timeout", "output"}:
            return Verdict("timeout", output=output)
        if ended.reason == "memory":
            return Verdict("memory", output=output)
        if crashed(ended) or "Sanitizer" in output:
            return Verdict("bug", title_of(output, ended), output)
        return Verdict("fine" if ended.code == 0 else "unsupported", output=output)

    async def fuzz(self, campaign: Campaign) -> Statistics:
        shared = self._bench.folder("afl")
        seeds = self._seeds(campaign)
        bounds = Bounds(
            campaign.budget_ms + SLACK_MS, memory=self._target.memory * 2, rolling=True,
            grace_ms=10_000,
        )  # fmt: skip
        roles = ["-M", *["-S"] * (campaign.cores - 1)]
        variables = UNTIL_BUG if campaign.until_bug else {}

        def heard(_: str) -> None:
            campaign.told(_statistics(shared))

        ends = await asyncio.gather(
            *(
                self._run(
                    self._fuzz_argv(seeds, shared, f"core{n}", role, campaign), bounds, variables,
                    None if n else heard,
                )
                for n, role in enumerate(roles)
            )
        )  # fmt: skip
        count = _statistics(shared)
        count.seconds = max(ended.took_ms for ended, _ in ends) / 1000
        count.new_inputs = _collect(shared, campaign)
        if count.executions == 0:
            raise EngineFailed(f"afl-fuzz did not fuzz: {last_words(ends[0][1])}")
        campaign.told(count)
        return count

    async def shrink(self, path: Path, into: Path, budget_ms: int) -> bool:
        argv = ["afl-tmin", "-i", str(path), "-o", str(into), *self._limits(), "--", *self._argv()]
        ended, _ = await self._run(argv, Bounds(budget_ms))
        return ended.fine and into.exists() and into.stat().st_size < path.stat().st_size

    async def prune(self, corpus: Path, into: Path, budget_ms: int) -> bool:
        """`afl-cmin` wants to make its folder itself."""
        made = self._target.scratch / "cmin"
        shutil.rmtree(made, ignore_errors=True)
        argv = ["afl-cmin", "-i", str(corpus), "-o", str(made), *self._limits(), "--"]
        ended, _ = await self._run([*argv, *self._argv()], Bounds(budget_ms))
        if not ended.fine:
            return False
        shutil.copytree(made, into, dirs_exist_ok=True)
        return any(into.iterdir())

    def _argv(self) -> list[str]:
        return filled(self._options.argv, self._target)

    def _limits(self) -> list[str]:
        memory = str(self._target.memory // MIB) if self._options.memory_bound else "none"
        return ["-m", memory, "-t", str(self._target.input_timeout_ms)]

    def _fuzz_argv(
        self, seeds: Path, shared: Path, name: str, role: str, campaign: Campaign
    ) -> list[str]:
        seconds = max(campaign.budget_ms // 1000, 1)
        return [
            "afl-fuzz", role, name, "-i", str(seeds), "-o", str(shared), "-V", str(seconds),
            *self._limits(), *self._options.flags, "--", *self._argv(),
        ]  # fmt: skip

    def _seeds(self, campaign: Campaign) -> Path:
        """Empty files are left out, for afl-fuzz refuses a folder of nothing else."""
        seeds = self._bench.folder("seeds")
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
        bounds: Bounds,
        variables: Mapping[str, str] | None = None,
        heard: Callable[[str], None] | None = None,
    ) -> tuple[Ended, str]:
        if argv[0].startswith("afl-") and shutil.which(argv[0]) is None:
            raise InvalidInput("engine", "afl++ to be installed (its package is afl++)", argv[0])
        return await self._bench.run(argv, bounds, VARIABLES | dict(variables or {}), heard)


def _statistics(shared: Path) -> Statistics:
    """The sum over all instances."""
    count = Statistics()
    for path in shared.glob("*/fuzzer_stats"):
        lines = (line.partition(":") for line in path.read_text().splitlines())
        told = {name.strip(): value.strip() for name, _, value in lines}
        count.executions += int(told.get("execs_done", 0))
        count.bugs += int(told.get("saved_crashes", 0))
        count.timeouts += int(told.get("saved_hangs", 0))
    return count


def _collect(shared: Path, campaign: Campaign) -> int:
    """Copy crashes and new inputs out of AFL's folders, each content once."""
    for path in shared.glob("*/crashes/id*"):
        _copy(path, campaign.crashes, "crash-")
    return sum(_copy(path, campaign.corpus, "") for path in shared.glob("*/queue/id*"))


def _copy(path: Path, folder: Path, start: str) -> int:
    target = folder / f"{start}{hashlib.sha256(path.read_bytes()).hexdigest()[:32]}"
    if target.exists():
        return 0
    shutil.copyfile(path, target)
    return 1

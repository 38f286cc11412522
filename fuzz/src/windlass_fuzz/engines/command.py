"""`command`: fuzzes any program that reads a file, by its exit codes.

Inputs come from a generator that the solver provides, or from mutating tests and the corpus. There
is no coverage feedback; an input is kept if the program behaves in a new way: another exit code, or
different words in its output.
"""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from windlass_fuzz.config.finding_settings import may_be_finding
from windlass_fuzz.engines.debugger import stack_of
from windlass_fuzz.engines.engine import (
    Campaign,
    EngineFailed,
    Kind,
    Statistics,
    Target,
    Verdict,
    bug_verdict,
    fill_placeholders,
    parse_options,
)
from windlass_fuzz.engines.mutation import mutate
from windlass_fuzz.engines.sanitizers import (
    SanitizerReport,
    needs_address_space,
    report_before_limit,
    report_of_run,
    sanitizer_report,
)
from windlass_fuzz.engines.signature import (
    crashed,
    normalise,
    prints_usage,
    says_out_of_memory,
    signature_of,
)
from windlass_fuzz.engines.tool_runner import ToolRunner, files_in, last_line, run_concurrently
from windlass_fuzz.processes.runner import ExitStatus, Limits
from windlass_fuzz.seeds.dictionaries import parse_dictionary

MAX_KEPT: Final = 2_000
BORROW_FROM: Final = 50  # other inputs from which a mutation may copy words
PROGRESS_EVERY: Final = 25
KEPT_PER_TITLE: Final = 16  # inputs that break the build
OUTPUT_CHARS: Final = 4_096  # characters of output that we compare to detect new behaviour


class CommandOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The options of this engine in the solver file.

    `argv` is the program; `{input}` is replaced by the file and `{binaries}` by the build's folder.
    `generate`, if given, writes `{output}` from `{test}` and the number `{seed}`. A program killed
    by a signal and a sanitizer's report are always bugs; an exit code in no list is `unsupported`.
    `sanitizer` disables the limit on address space.
    """

    argv: list[str]
    generate: list[str] = []
    fine: list[int] = msgspec.field(default_factory=lambda: [0])
    bug: list[int] = []
    unsupported: list[int] = []
    sanitizer: bool = False


class CommandEngine:
    """The engine for programs that know nothing of fuzzing."""

    options_type = CommandOptions

    def __init__(self, target: Target) -> None:
        self._target = target
        self._options = parse_options(target, CommandOptions)
        self._tools = ToolRunner(target)
        self.seen: set[str] = set()  # behaviours in all campaigns of a run

    def command(self, path: Path) -> list[str]:
        return fill_placeholders(self._options.argv, self._target, input=str(path))

    async def classify(self, path: Path) -> Verdict:
        limited = not self._options.sanitizer  # other tasks may change it meanwhile
        ended, output, errors = await self._tools.run_target(self.command(path), self._limits())
        if limited and (needs_address_space(output) or self._report(path, ended, output, errors)):
            # A sanitizer cannot start within the limit, or finish its report if it started before
            # the limit was set. So we omit the limit from now on.
            self._options.sanitizer = True
            ended, output, errors = await self._tools.run_target(self.command(path), self._limits())
        kind = self._kind(path, ended, output, errors)
        if kind != "bug":
            return Verdict(kind, output=output)
        data = path.read_bytes()
        found = signature_of(
            output, ended, self._target.signature, errors, data, self._tools.program
        )
        return bug_verdict(found, output)

    async def stack(self, path: Path) -> tuple[str, ...]:
        """Runs the input again in a debugger."""
        timeout = self._target.input_timeout_ms
        return await stack_of(self._tools, self.command(path), timeout, self._target.signature)

    async def fuzz(self, campaign: Campaign) -> Statistics:
        """Runs one loop per core; the loops share their pool of inputs."""
        pool = [path.read_bytes() for path in [*campaign.seeds, *files_in(campaign.corpus)]]
        if not pool:
            raise EngineFailed(
                "there are no tests and no corpus to start from; set `tests` in the solver file"
            )
        loop = _FuzzLoop(self, campaign, pool, self._target)
        if campaign.dictionary is not None:
            loop.words = [b" ".join(parse_dictionary(campaign.dictionary.read_bytes()))]
        began = self._target.clock.now_ms()
        deadline = began + campaign.budget_ms
        await run_concurrently(loop.run_until(deadline) for _ in range(campaign.cores))
        loop.statistics.seconds = (self._target.clock.now_ms() - began) / 1000
        return loop.statistics

    async def shrink(self, path: Path, into: Path, budget_ms: int) -> bool:  # noqa: ARG002
        """Returns False: this engine has no minimiser."""
        return False

    async def prune(self, corpus: Path, into: Path, budget_ms: int) -> bool:  # noqa: ARG002
        """Returns False: this engine sees no coverage."""
        return False

    async def make(self, base: bytes, others: list[bytes]) -> Path:
        """Writes a new input to a file and returns its path."""
        path = self._tools.path("input")
        if not self._options.generate:
            path.write_bytes(mutate(base, others, self._target.chance.fraction))
            return path
        test = self._tools.path("test")
        test.write_bytes(base)
        seed = str(int(self._target.chance.fraction() * 2**53))
        argv = fill_placeholders(
            self._options.generate, self._target, test=str(test), seed=seed, output=str(path),
            sources=str(self._target.sources or ""),
        )  # fmt: skip
        ended, output = await self._tools.run(argv, self._limits())
        test.unlink()
        if not ended.ok or not path.exists():
            how = ended.describe(self._limits())
            raise EngineFailed(f"the generator {argv[0]} {how}: {last_line(output)}")
        return path

    def _limits(self) -> Limits:
        memory = self._target.memory
        space = 0 if self._options.sanitizer else memory
        return Limits(self._target.input_timeout_ms, memory=memory, address_space=space)

    def _report(
        self, path: Path, ended: ExitStatus, output: str, errors: str
    ) -> SanitizerReport | None:
        report = report_of_run(output, errors, failed=ended.code not in self._options.fine)
        if report is not None or not self._options.sanitizer:
            return report
        # A script may pass on reports of a build that continues elsewhere, and a program may repeat
        # its input.
        report = sanitizer_report(output)
        return None if report is None or report.repeats(path.read_bytes()) else report

    def _kind(self, path: Path, ended: ExitStatus, output: str, errors: str) -> Kind:
        if ended.reason != "exited" and report_before_limit(errors) is not None:
            return "bug"
        if ended.reason in {"timeout", "output"}:
            return "timeout"
        if ended.reason == "memory":
            return "memory"
        if (report := self._report(path, ended, output, errors)) is not None:
            return "memory" if report.kind == "memory" else "bug"
        if ended.code != 0 and says_out_of_memory(output, path.read_bytes()):
            return "memory"
        if ended.code in self._options.bug:
            return "bug"
        if ended.code in self._options.fine:
            return "unsupported" if prints_usage(output, path.read_bytes()) else "fine"
        if ended.code in self._options.unsupported:
            return "unsupported"
        return "bug" if crashed(ended) else "unsupported"


class _FuzzLoop:
    """One campaign: the pool of inputs, the behaviours seen, and the statistics."""

    def __init__(
        self, engine: CommandEngine, campaign: Campaign, pool: list[bytes], target: Target
    ) -> None:
        self._engine = engine
        self._campaign = campaign
        self._pool = pool
        self._target = target
        self._kept: dict[str, list[Path]] = {}
        self._met: Counter[str] = Counter()
        self.words: list[bytes] = []
        self.statistics = Statistics()

    async def run_until(self, deadline_ms: int) -> None:
        """Makes, runs and sorts inputs until the time is over."""
        while self._target.clock.now_ms() < deadline_ms and not self._enough():
            others = [*self.words, *(self._pick() for _ in range(BORROW_FROM))]
            path = await self._engine.make(self._pick(), others)
            verdict = await self._engine.classify(path)
            self._note(path, verdict)
            path.unlink(missing_ok=True)

    def _enough(self) -> bool:
        return self._campaign.until_bug and self.statistics.bugs > 0

    def _pick(self) -> bytes:
        """Picks a test half of the time, preferring the first (rarest) ones; otherwise any
        input.
        """
        draw = self._target.chance.fraction
        tests = len(self._campaign.seeds)
        if tests and draw() < 0.5:
            return self._pool[int(draw() ** 3 * tests)]
        return self._pool[int(draw() * len(self._pool))]

    def _note(self, path: Path, verdict: Verdict) -> None:
        count = self.statistics
        count.executions += 1
        count.bugs += verdict.kind == "bug"
        count.unsupported += verdict.kind == "unsupported"
        count.timeouts += verdict.kind == "timeout"
        count.memory += verdict.kind == "memory"
        if verdict.kind == "bug":
            self._keep_failure(path, verdict.title)
        elif verdict.kind == "fine":
            self._keep_new(path, verdict)
        elif may_be_finding(verdict.kind, self._campaign.kinds):
            self._keep_failure(path, verdict.kind)
        if count.executions % PROGRESS_EVERY == 0:
            self._campaign.on_progress(count)

    def _keep_failure(self, path: Path, title: str) -> None:
        """Keeps some inputs per title: different bugs may share one.

        Once there are enough, another input randomly replaces one of them, so that a bug that is
        easy to hit does not crowd out the others.
        """
        self._met[title] += 1
        kept = self._kept.setdefault(title, [])
        place = len(kept)
        if place >= KEPT_PER_TITLE:
            place = int(self._target.chance.fraction() * self._met[title])
            if place >= KEPT_PER_TITLE:
                return
        data = path.read_bytes()
        target = self._campaign.crashes / f"crash-{hashlib.sha256(data).hexdigest()[:32]}"
        if target in kept:
            return
        if place < len(kept):
            kept[place].unlink(missing_ok=True)
        kept[place : place + 1] = [target]
        target.write_bytes(data)

    def _keep_new(self, path: Path, verdict: Verdict) -> None:
        behaviour = normalise(verdict.output[:OUTPUT_CHARS])
        if behaviour in self._engine.seen or len(self._pool) >= MAX_KEPT:
            return
        self._engine.seen.add(behaviour)
        data = path.read_bytes()
        self._pool.append(data)
        self.statistics.new_inputs += 1
        name = hashlib.sha256(data).hexdigest()[:32]
        (self._campaign.corpus / name).write_bytes(data)

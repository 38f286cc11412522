"""`typefuzz`: mutates SMT formulas within their types and compares the answers of two solvers.

The fuzzer comes from the package yinyang. It goes through its seeds once and gives up at one it
cannot read. We therefore start it with one seed after another until the budget is used up, on every
core and in separate folders.
"""

import hashlib
import os
import re
import shutil
import sys
from collections import deque
from pathlib import Path
from typing import Final

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.engines.engine import (
    Campaign,
    EngineFailed,
    Kind,
    Statistics,
    Target,
    Verdict,
    fill_placeholders,
    parse_options,
)
from windlass_fuzz.engines.formulas import answers_differ, operators_of
from windlass_fuzz.engines.signature import TITLE_LENGTH, crashed, signature_of
from windlass_fuzz.engines.tool_runner import ToolRunner, files_in, last_line, run_concurrently
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.processes.runner import Limits

CVC5: Final = f"{sys.executable} {Path(__file__).with_name('cvc5_program.py')}"
MIN_MS: Final = 1_000  # starting typefuzz for less time than this is not worth it
BAD_SEED: Final = 3  # typefuzz calls this an internal error; the seed causes it
FAILED: Final = (2, 4, 5)  # usage, a solver that cannot be run, disk full
_CALLS: Final = re.compile(r"Performed (\d+) solver calls")
_VALID: Final = re.compile(r"(\d+) valid")
_ANSWER: Final = re.compile(r"^(sat|unsat|unknown)$", re.MULTILINE)
_BROKEN: Final = re.compile(
    r"Assertion|ASSERTION|Fatal failure|Internal error|invalid model|Segmentation fault"
    r"|AddressSanitizer|runtime error"
)
_REFUSED: Final = ("(error ", "unsupported", "Parse Error", "Unimplemented")


class TypefuzzOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`solvers` are two or more command lines, to which a file name is appended.

    `{binaries}` is the folder of the build; `{cvc5}` and `{z3}` are the programs from the
    wheels. `iterations` is how often each seed is mutated before the next one.
    """

    solvers: list[str]
    iterations: int = 300
    program: str = ""


class TypefuzzEngine:
    """The engine for SMT solvers."""

    options_type = TypefuzzOptions

    def __init__(self, target: Target) -> None:
        self._target = target
        self._options = parse_options(target, TypefuzzOptions)
        self._tools = ToolRunner(target)
        if len(self._options.solvers) < 2:
            expected = "at least two command lines"
            raise InvalidInput("engine.solvers", expected, self._options.solvers)
        z3 = shutil.which("z3", path=_search_path()) or "z3"
        self._solvers = fill_placeholders(self._options.solvers, target, cvc5=CVC5, z3=z3)

    def command(self, path: Path) -> list[str]:
        joined = "; ".join(f"{solver} {path}" for solver in self._solvers)
        return ["sh", "-c", joined]

    async def classify(self, path: Path) -> Verdict:
        """Reports a crash of any solver, or two different answers other than `unknown`."""
        transcript: list[str] = []
        answers: dict[str, list[str]] = {}
        for name, solver in self._named():
            ended, output = await self._tools.run([*solver.split(), str(path)], self._limits())
            transcript.append(f"$ {solver}\n{output}")
            if ended.reason != "exited":
                kind: Kind = "memory" if ended.reason == "memory" else "timeout"
                return Verdict(kind, output="\n".join(transcript))
            if crashed(ended) or _BROKEN.search(output):
                found = signature_of(output, ended, self._target.signature)
                title = f"{name}: {found.title}"
                return Verdict("bug", title, "\n".join(transcript), found.kind, found.frames)
            if not any(word in output for word in _REFUSED):
                answers[name] = _ANSWER.findall(output)
        return self._compare(path, answers, "\n".join(transcript))

    def _compare(self, path: Path, answers: dict[str, list[str]], output: str) -> Verdict:
        if len(answers) < 2:
            return Verdict("unsupported", output=output)
        family = answers_differ(answers)
        if not family:
            return Verdict("fine", output=output)
        operators = operators_of(path.read_text(errors="replace"))
        title = f"{family} ({' '.join(operators) or 'no operator'})"[:TITLE_LENGTH]
        return Verdict("bug", title, output, "wrong_answer", operators, family=family)

    def _named(self) -> list[tuple[str, str]]:
        """Returns the solvers with their names; a number tells those of one program apart."""
        names = [_name_of(solver) for solver in self._solvers]
        numbered = [
            name if names.count(name) == 1 else f"{name} #{names[:place].count(name) + 1}"
            for place, name in enumerate(names)
        ]
        return list(zip(numbered, self._solvers, strict=True))

    async def fuzz(self, campaign: Campaign) -> Statistics:
        """Starts typefuzz with one seed at a time, in turn, and drops seeds that it cannot read."""
        seeds = deque(self._seeds(campaign))
        if not seeds:
            raise EngineFailed("there are no SMT-LIB files among the tests to start from")
        count = Statistics()
        began = self._target.clock.now_ms()
        deadline = began + campaign.budget_ms
        await run_concurrently(
            self._fuzz_until(deadline, seeds, campaign, count) for _ in range(campaign.cores)
        )
        count.seconds = (self._target.clock.now_ms() - began) / 1000
        if count.executions == 0:
            raise EngineFailed(f"typefuzz did not fuzz: {count.note or 'no solver was called'}")
        return count

    async def stack(self, path: Path) -> tuple[str, ...]:  # noqa: ARG002
        """Returns nothing: we do not know which of the solvers to debug."""
        return ()

    async def shrink(self, path: Path, into: Path, budget_ms: int) -> bool:  # noqa: ARG002
        """Returns False: our own delta debugging handles formulas well."""
        return False

    async def prune(self, corpus: Path, into: Path, budget_ms: int) -> bool:  # noqa: ARG002
        """Returns False: this engine sees no coverage."""
        return False

    async def _fuzz_until(
        self, deadline: int, seeds: deque[Path], campaign: Campaign, count: Statistics
    ) -> None:
        while seeds and (left := deadline - self._target.clock.now_ms()) >= MIN_MS:
            seed = seeds.popleft()
            if await self._fuzz_seed(seed, left, campaign, count):
                seeds.append(seed)
            campaign.on_progress(count)
            if campaign.until_bug and count.bugs:
                return

    async def _fuzz_seed(
        self, seed: Path, left_ms: int, campaign: Campaign, count: Statistics
    ) -> bool:
        """Fuzzes one seed; returns whether the seed is usable."""
        folder = self._tools.folder("typefuzz")
        limits = Limits(left_ms, memory=self._target.memory * 2, grace_ms=1_000)

        def on_output(_: str) -> None:
            _collect(folder / "bugs", campaign.crashes)  # a killed run must not lose them

        argv = self._typefuzz_argv(folder, seed)
        ended, output = await self._tools.run(argv, limits, on_output=on_output)
        bugs = _collect(folder / "bugs", campaign.crashes)
        shutil.rmtree(folder, ignore_errors=True)
        calls = self._calls(output, bugs)
        count.executions += calls
        count.bugs += bugs
        if ended.reason != "exited":
            return True
        if ended.code in FAILED:
            raise EngineFailed(f"typefuzz exited with code {ended.code}: {output[-500:].strip()}")
        if ended.code == BAD_SEED or not calls:
            count.note = f"typefuzz cannot use {seed.name}: {last_line(output)}"
            return False
        return True

    def _calls(self, output: str, bugs: int) -> int:
        """Returns a lower bound: typefuzz reports its calls only every two seconds."""
        reported = [*map(int, _CALLS.findall(output)), *map(int, _VALID.findall(output))]
        return max([*reported, bugs * len(self._solvers)])

    def _typefuzz_argv(self, folder: Path, seed: Path) -> list[str]:
        program = self._options.program or shutil.which("typefuzz", path=_search_path())
        if program is None:
            message = "typefuzz is not installed; run pip install 'windlass[typefuzz]'"
            raise InvalidSetting("engine", message)
        timeout = max(self._target.input_timeout_ms // 1000, 1)
        places = ["-l", "logs", "-b", "bugs", "-s", "scratch"]
        argv = [program, "-i", str(self._options.iterations), "-t", str(timeout)]
        for name in ("logs", "bugs", "scratch"):
            (folder / name).mkdir()
        if program.endswith("/typefuzz"):
            argv = [sys.executable, *argv]
        return [*argv, *[str(folder / w) if w[0] != "-" else w for w in places],
                ";".join(self._solvers), str(seed)]  # fmt: skip

    def _seeds(self, campaign: Campaign) -> list[Path]:
        """Copies the seeds under names that typefuzz accepts, the most relevant first."""
        folder = self._tools.folder("seeds")
        named = []
        for number, path in enumerate([*campaign.seeds, *files_in(campaign.corpus)]):
            named.append(folder / f"{number:05d}-{path.stem}.smt2")
            shutil.copyfile(path, named[-1])
        return named

    def _limits(self) -> Limits:
        memory = self._target.memory
        return Limits(self._target.input_timeout_ms, memory=memory, address_space=memory)


def _name_of(solver: str) -> str:
    """Returns the program of a command line; for a script, the script's name."""
    words = [Path(word) for word in solver.split()]
    scripts = [word.stem for word in words[:2] if word.suffix == ".py"]
    return scripts[0].removesuffix("_program") if scripts else words[0].name


def _search_path() -> str:
    """Returns a search path: the programs of this Python environment, then PATH."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def _collect(bugs: Path, crashes: Path) -> int:
    found = 0
    for path in bugs.glob("*.smt2"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        shutil.copyfile(path, crashes / f"crash-{digest}.smt2")
        found += 1
    return found

"""`typefuzz`: SMT formulas changed within their types, the answers of two solvers compared.

The fuzzer itself comes from the package yinyang. It walks through its seeds once and
gives up at one that it cannot read, so it is started with one seed after another until the
budget is spent, on every core and in folders of its own.
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
from windlass.fuzzing.engines.engine import (
    Campaign,
    EngineFailed,
    Kind,
    Statistics,
    Target,
    Verdict,
    filled,
    options_of,
)
from windlass.fuzzing.engines.workbench import Workbench, files_in, last_words, together
from windlass.fuzzing.findings.signature import crashed, title_of
from windlass.fuzzing.processes import Bounds

CVC5: Final = f"{sys.executable} {Path(__file__).with_name('cvc5_program.py')}"
SHORTEST_MS: Final = 1_000  # a start for less than this is not worth it
BAD_SEED: Final = 3  # it calls it an internal error, and it comes of what a seed holds
FAILED: Final = (2, 4, 5)  # usage, a solver that cannot be run, disk full
_CALLS: Final = re.compile(r"Performed (\d+) solver calls")
_VALID: Final = re.compile(r"(\d+) valid")
_ANSWER: Final = re.compile(r"^(sat|unsat|unknown)$", re.MULTILINE)
_LOGIC: Final = re.compile(r"\(set-logic (\w+)\)")
_BROKEN: Final = re.compile(
    r"Assertion|ASSERTION|Fatal failure|Internal error|invalid model|Segmentation fault"
    r"|AddressSanitizer|runtime error"
)
_REFUSED: Final = ("(error ", "unsupported", "Parse Error", "Unimplemented")


class TypefuzzOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`solvers` are two or more command lines, to which a file's name is added.

    `{binaries}` is the folder of the build, `{cvc5}` the one of cvc5's wheel, `{z3}` that of
    z3's. `iterations` is how often each seed is changed before the next one.
    """

    solvers: list[str]
    iterations: int = 300
    program: str = ""


class TypefuzzEngine:
    """An engine for SMT solvers."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._options = options_of(target, TypefuzzOptions)
        self._bench = Workbench(target)
        if len(self._options.solvers) < 2:
            expected = "two or more command lines, to compare"
            raise InvalidInput("engine.solvers", expected, self._options.solvers)
        z3 = shutil.which("z3", path=_beside_python()) or "z3"
        self._solvers = filled(self._options.solvers, target, cvc5=CVC5, z3=z3)

    def command(self, path: Path) -> list[str]:
        joined = "; ".join(f"{solver} {path}" for solver in self._solvers)
        return ["sh", "-c", joined]

    async def judge(self, path: Path) -> Verdict:
        """A crash of any solver, or two that answer differently (not by `unknown`)."""
        said: list[str] = []
        answers: list[list[str]] = []
        for solver in self._solvers:
            ended, output = await self._bench.run([*solver.split(), str(path)], self._bounds())
            said.append(f"$ {solver}\n{output}")
            if ended.reason != "exited":
                kind: Kind = "memory" if ended.reason == "memory" else "timeout"
                return Verdict(kind, output="\n".join(said))
            if crashed(ended) or _BROKEN.search(output):
                title = f"{_name_of(solver)}: {title_of(output, ended)}"
                return Verdict("bug", title, "\n".join(said))
            if not any(word in output for word in _REFUSED):
                answers.append(_ANSWER.findall(output))
        return self._compare(path, answers, "\n".join(said))

    def _compare(self, path: Path, answers: list[list[str]], said: str) -> Verdict:
        if len(answers) < 2:
            return Verdict("unsupported", output=said)
        for other in answers[1:]:
            for one, two in zip(answers[0], other, strict=False):
                if one != two and "unknown" not in {one, two}:
                    logic = _LOGIC.search(path.read_text(errors="replace"))
                    name = logic[1] if logic else "no logic"
                    return Verdict("bug", f"answers differ: {one} against {two} ({name})", said)
        return Verdict("fine", output=said)

    async def fuzz(self, campaign: Campaign) -> Statistics:
        """Seeds are taken in turn, one for each start; one that it cannot read is let go."""
        seeds = deque(self._seeds(campaign))
        if not seeds:
            raise EngineFailed("expected SMT-LIB files among the tests to begin with, got none")
        count = Statistics()
        began = self._target.clock.now_ms()
        deadline = began + campaign.budget_ms
        await together(
            self._fuzz_until(deadline, seeds, campaign, count) for _ in range(campaign.cores)
        )
        count.seconds = (self._target.clock.now_ms() - began) / 1000
        if count.executions == 0:
            raise EngineFailed(f"typefuzz did not fuzz: {count.note or 'no solver was called'}")
        return count

    async def shrink(self, path: Path, into: Path, budget_ms: int) -> bool:  # noqa: ARG002
        """Delta debugging serves formulas well."""
        return False

    async def prune(self, corpus: Path, into: Path, budget_ms: int) -> bool:  # noqa: ARG002
        """It sees no coverage."""
        return False

    async def _fuzz_until(
        self, deadline: int, seeds: deque[Path], campaign: Campaign, count: Statistics
    ) -> None:
        while seeds and (left := deadline - self._target.clock.now_ms()) >= SHORTEST_MS:
            seed = seeds.popleft()
            if await self._fuzz_seed(seed, left, campaign, count):
                seeds.append(seed)
            campaign.told(count)
            if campaign.until_bug and count.bugs:
                return

    async def _fuzz_seed(
        self, seed: Path, left_ms: int, campaign: Campaign, count: Statistics
    ) -> bool:
        """Whether the seed is of any use."""
        folder = self._bench.folder("typefuzz")
        bounds = Bounds(left_ms, memory=self._target.memory * 2, grace_ms=1_000)
        ended, output = await self._bench.run(self._typefuzz_argv(folder, seed), bounds)
        bugs = _collect(folder / "bugs", campaign.crashes)
        shutil.rmtree(folder, ignore_errors=True)
        calls = self._calls(output, bugs)
        count.executions += calls
        count.bugs += bugs
        if ended.reason != "exited":
            return True
        if ended.code in FAILED:
            raise EngineFailed(f"typefuzz ended with {ended.code}: {output[-500:].strip()}")
        if ended.code == BAD_SEED or not calls:
            count.note = f"{seed.name} is of no use to typefuzz: {last_words(output)}"
            return False
        return True

    def _calls(self, output: str, bugs: int) -> int:
        """At least so many: it tells them every two seconds only, and seeds in the end."""
        told = [*map(int, _CALLS.findall(output)), *map(int, _VALID.findall(output))]
        return max([*told, bugs * len(self._solvers)])

    def _typefuzz_argv(self, folder: Path, seed: Path) -> list[str]:
        program = self._options.program or shutil.which("typefuzz", path=_beside_python())
        if program is None:
            raise InvalidInput("engine", "yinyang, from pip install 'windlass[typefuzz]'", "none")
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
        """Under names that it takes for formulas, the most telling first."""
        folder = self._bench.folder("seeds")
        named = []
        for number, path in enumerate([*campaign.seeds, *files_in(campaign.corpus)]):
            named.append(folder / f"{number:05d}-{path.stem}.smt2")
            shutil.copyfile(path, named[-1])
        return named

    def _bounds(self) -> Bounds:
        memory = self._target.memory
        return Bounds(self._target.input_timeout_ms, memory=memory, address_space=memory)


def _name_of(solver: str) -> str:
    """The program of a command line; a script rather than what runs it."""
    words = [Path(word) for word in solver.split()]
    scripts = [word.stem for word in words[:2] if word.suffix == ".py"]
    return scripts[0].removesuffix("_program") if scripts else words[0].name


def _beside_python() -> str:
    """Programs of the environment that runs this, and those of the PATH."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def _collect(bugs: Path, crashes: Path) -> int:
    found = 0
    for path in bugs.glob("*.smt2"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        shutil.copyfile(path, crashes / f"crash-{digest}.smt2")
        found += 1
    return found

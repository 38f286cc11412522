"""`make demo-typefuzz`: compares z3 with cvc5 on formulas that typefuzz makes.

It builds nothing: both solvers come from their wheels. Formulas on which they disagree or
crash are reproduced, minimised and printed. Usually they agree; to show what happens if not,
the demo ends with a z3 that gives wrong answers.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from windlass.clock import RealChance, RealClock
from windlass.domain.values.quantities import parse_duration_ms
from windlass_fuzz.engines.engine import Campaign, Statistics, Target, Verdict, make_engine
from windlass_fuzz.findings.minimise import minimise

PACKAGES = {"z3": "z3-solver", "cvc5": "cvc5"}
SEEDS = {
    "linear.smt2": """\
(set-logic QF_LIA)
(declare-fun x () Int)
(declare-fun y () Int)
(assert (and (> (+ x y) 3) (< (* 2 x) 5) (or (= x 7) (>= y 2))))
(check-sat)
""",
    "bits.smt2": """\
(set-logic QF_BV)
(declare-fun a () (_ BitVec 8))
(declare-fun b () (_ BitVec 8))
(assert (= (bvadd a b) (bvmul a b)))
(assert (bvult a b))
(check-sat)
""",
    "strings.smt2": """\
(set-logic QF_SLIA)
(declare-fun s () String)
(declare-fun t () String)
(assert (= (str.++ s t) "windlass"))
(assert (> (str.len s) 3))
(check-sat)
""",
}
# Gives the opposite answer if the formula contains the length of a string.
LIAR = """\
#!/bin/sh
answer=$({z3} "$1")
if grep -q str.len "$1"; then
  [ "$answer" = sat ] && answer=unsat || answer=sat
fi
echo "$answer"
"""
LIAR_BUDGET_MS = 60_000  # it is caught long before

console = Console(soft_wrap=True)


class Bench:
    """A folder with seeds, and campaigns on them."""

    def __init__(self, folder: Path, solvers: list[str], seeds: list[str]) -> None:
        names = ("scratch", "corpus", "crashes", "seeds")
        self.places = {name: folder / name for name in names}
        for place in self.places.values():
            place.mkdir(parents=True)
        for name in seeds:
            (self.places["seeds"] / name).write_text(SEEDS[name])
        target = Target(
            folder, {"solvers": solvers, "iterations": 50}, self.places["scratch"], RealClock(),
            RealChance(), input_timeout_ms=5_000,
        )  # fmt: skip
        self.engine = make_engine("typefuzz", target)

    async def fuzz(self, budget_ms: int, until_bug: bool = False) -> Statistics:
        """Fuzzes on all cores, and shows every disagreement in its smallest form."""
        seeds = sorted(self.places["seeds"].iterdir())
        cores = len(os.sched_getaffinity(0))
        campaign = Campaign(
            seeds,
            self.places["corpus"],
            self.places["crashes"],
            budget_ms,
            cores,
            until_bug,
            notify,
        )
        statistics = await self.engine.fuzz(campaign)
        shown: set[str] = set()
        for path in sorted(self.places["crashes"].iterdir()):
            verdict = await self.engine.classify(path)
            if verdict.kind == "bug" and verdict.title not in shown:
                shown.add(verdict.title)
                await self._show(path.read_bytes(), verdict)
        return statistics

    async def _show(self, before: bytes, verdict: Verdict) -> None:
        async def still_fails(data: bytes) -> bool:
            candidate = self.places["scratch"] / "candidate.smt2"
            candidate.write_bytes(data)
            return (await self.engine.classify(candidate)).title == verdict.title

        small = await minimise(before, still_fails, tries=200)
        sizes = f"{len(before)} bytes, minimised to {len(small)}"
        console.print(f"{verdict.title} ({sizes}):", style="red", markup=False, highlight=False)
        console.print(small.decode().strip(), markup=False, highlight=False)


def notify(count: Statistics) -> None:
    """Prints the progress."""
    if count.executions:
        line = f"  {count.executions} solver calls, {count.bugs} suspects"
        console.print(line, style="dim", highlight=False)


def introduce() -> None:
    """Prints which solvers are compared, and how."""
    names = [f"{name} {version(package)}" for name, package in PACKAGES.items()]
    console.print(f"\n1. {' against '.join(names)}", style="bold", highlight=False)
    console.print(
        f"From {len(SEEDS)} formulas typefuzz makes new ones by replacing terms with others of the "
        "same type.\nBoth solvers have to agree on each of them. One of the formulas:\n",
        highlight=False,
    )
    console.print(SEEDS["linear.smt2"], style="dim", markup=False, highlight=False)


async def play(folder: Path, budget_ms: int) -> Statistics:
    """Runs both parts; returns the statistics of the first."""
    introduce()
    statistics = await Bench(folder / "real", ["{z3}", "{cvc5}"], list(SEEDS)).fuzz(budget_ms)
    verdict = "they agreed each time" if not statistics.bugs else "see above"
    console.print(
        f"{statistics.executions} calls in {statistics.seconds:.0f} s, {statistics.bugs} suspects: "
        f"{verdict}", style="green", highlight=False,
    )  # fmt: skip
    console.print("\n2. A z3 that lies about the length of strings", style="bold", highlight=False)
    console.print("What it looks like when solvers do not agree:\n", highlight=False)
    liar = folder / "liar"
    z3 = Path(sys.executable).with_name("z3")
    liar.write_text(LIAR.replace("{z3}", str(z3)))
    liar.chmod(0o755)
    caught = await Bench(folder / "planted", ["{z3}", str(liar)], ["strings.smt2"]).fuzz(
        LIAR_BUDGET_MS, until_bug=True
    )
    if not caught.bugs:
        raise SystemExit("the wrong answer was not noticed")
    return statistics


def run(budget: str) -> Statistics:
    """Runs the whole demo."""
    with tempfile.TemporaryDirectory(prefix="windlass-typefuzz-") as name:
        statistics = asyncio.run(play(Path(name), parse_duration_ms(budget, "budget")))
    console.print("\ndone: compared, and caught a planted wrong answer", style="bold green")
    console.print("to fuzz your own solver: docs/guides/fuzzing-engines.md", highlight=False)
    return statistics


def main() -> None:
    """Runs the demo from the command line."""
    parser = argparse.ArgumentParser(description="typefuzz on z3 and cvc5.")
    parser.add_argument("--budget", default="60s", help="such as 60s")
    run(parser.parse_args().budget)


if __name__ == "__main__":
    main()

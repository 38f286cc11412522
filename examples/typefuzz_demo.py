"""`make demo-typefuzz`: real z3 against real cvc5, with formulas that typefuzz makes.

Nothing is built: both solvers come from their wheels. Whatever they disagree about, or crash
on, is reproduced, made small and printed; mostly they agree, and that is shown as well.
"""

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from rich.console import Console

from windlass.clock import RealChance, RealClock
from windlass.domain.quantities import parse_duration_ms
from windlass.fuzzing.engines.engine import Campaign, Statistics, Target, make_engine
from windlass.fuzzing.findings.minimise import minimise

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
SOLVERS = ["{z3}", "{cvc5}"]

console = Console()


async def fuzz(folder: Path, budget_ms: int) -> Statistics:
    """Fuzz on all cores, and show every disagreement in its smallest form."""
    places = {name: folder / name for name in ("scratch", "corpus", "crashes", "seeds")}
    for place in places.values():
        place.mkdir()
    for name, text in SEEDS.items():
        (places["seeds"] / name).write_text(text)
    target = Target(
        folder, {"solvers": SOLVERS, "iterations": 50}, places["scratch"], RealClock(),
        RealChance(), input_timeout_ms=5_000,
    )  # fmt: skip
    engine = make_engine("typefuzz", target)
    seeds = sorted(places["seeds"].iterdir())
    cores = len(os.sched_getaffinity(0))

    def told(count: Statistics) -> None:
        console.print(f"{count.executions} solver calls, {count.bugs} suspects", style="dim")

    campaign = Campaign(seeds, places["corpus"], places["crashes"], budget_ms, cores, told=told)
    statistics = await engine.fuzz(campaign)
    for path in sorted(places["crashes"].iterdir()):
        verdict = await engine.judge(path)
        if verdict.kind != "bug":
            continue

        async def shows(data: bytes, title: str = verdict.title) -> bool:
            candidate = places["scratch"] / "candidate.smt2"
            candidate.write_bytes(data)
            return (await engine.judge(candidate)).title == title

        small = await minimise(path.read_bytes(), shows, tries=200)
        console.print(f"{verdict.title}\n{small.decode()}", style="red", markup=False)
    return statistics


def run(budget: str) -> Statistics:
    """The whole demo."""
    with tempfile.TemporaryDirectory(prefix="windlass-typefuzz-") as name:
        statistics = asyncio.run(fuzz(Path(name), parse_duration_ms(budget, "budget")))
    console.print(
        f"done: {statistics.executions} calls of z3 and cvc5 in {statistics.seconds:.0f} s, "
        f"{statistics.bugs} suspects", style="bold green",
    )  # fmt: skip
    return statistics


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description="typefuzz on z3 and cvc5.")
    parser.add_argument("--budget", default="60s", help="such as 60s")
    run(parser.parse_args().budget)


if __name__ == "__main__":
    main()

"""Divides the budget of a run among combinations: half equally, half by yield. Pure functions."""

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Final

import msgspec

from windlass.domain.values.quantities import format_duration
from windlass_fuzz.statistics.history import RunPoint

LAST: Final = 10  # maximum runs that count
FINDING: Final = 10  # points for a new finding
MAX_GROWTH: Final = 10  # maximum points of a run for new coverage or inputs, one per percent
LITTLE: Final = 4  # a combination that does not reach a change gets this fraction of an equal share
HOUR_S: Final = 3_600


class Yield(msgspec.Struct, frozen=True, kw_only=True):
    """What the last runs of a combination found; unknown without runs."""

    runs: int = 0
    findings: int = 0
    points: float = 0.0
    seconds: float = 0.0

    @property
    def per_hour(self) -> float:
        """Returns the points per hour; a run counts as at least a second."""
        return self.points * HOUR_S / max(self.seconds, float(self.runs), 1.0)


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What the next run gives to a combination, and why."""

    combination: str
    ms: int
    why: str


def shares(budget_ms: int, yields: Sequence[float | None]) -> list[int]:
    """Divides a budget; the parts sum up to it exactly.

    Half is divided equally, the rest in proportion to the yields. None is a combination that never
    ran: it counts as the best one. Without any yield all get the same. Remainders of rounding go to
    the best one, the first of equals.
    """
    if not yields:
        return []
    known = [max(Fraction(one), Fraction(0)) for one in yields if one is not None]
    best = max(known, default=Fraction(0))
    weights = [best if one is None else max(Fraction(one), Fraction(0)) for one in yields]
    if not any(weights):
        weights = [Fraction(1)] * len(yields)
    equal = budget_ms // 2 // len(yields)
    rest = budget_ms - equal * len(yields)
    total = sum(weights)
    parts = [equal + int(rest * weight / total) for weight in weights]
    parts[weights.index(max(weights))] += budget_ms - sum(parts)
    return parts


def yield_of(runs: Sequence[RunPoint], combination: str) -> Yield:
    """Returns the yield of a combination's last runs; `runs` are ordered oldest first."""
    own = [run for run in runs if run.combination == combination]
    recent = own[-LAST:]
    points = 0.0
    best = max((run.coverage for run in own[:-LAST]), default=-1)
    for run in recent:
        points += FINDING * run.new_findings + _growth(run, best)
        best = max(best, run.coverage)
    return Yield(
        runs=len(recent), findings=sum(run.new_findings for run in recent), points=points,
        seconds=sum(run.seconds for run in recent),
    )  # fmt: skip


def divide(
    budget_ms: int,
    names: Sequence[str],
    runs: Sequence[RunPoint],
    reaching: Collection[str] | None = None,
) -> list[Share]:
    """Divides a budget among combinations and returns the reasons.

    Combinations that are not among the `reaching` get little, mainly to run their tests.
    """
    wanted = [name for name in names if reaching is None or name in reaching]
    little = budget_ms // len(names) // LITTLE if wanted and names else 0
    left = budget_ms - little * (len(names) - len(wanted))
    given = {one.combination: one for one in _by_yield(left, wanted or names, runs)}
    beside = "its tests do not reach the change"
    return [given.get(name) or Share(combination=name, ms=little, why=beside) for name in names]


def _by_yield(budget_ms: int, names: Sequence[str], runs: Sequence[RunPoint]) -> list[Share]:
    yields = [yield_of(runs, name) for name in names]
    parts = shares(budget_ms, [one.per_hour if one.runs else None for one in yields])
    anything = any(one.points for one in yields)
    return [
        Share(combination=name, ms=ms, why=_why(one, anything))
        for name, ms, one in zip(names, parts, yields, strict=True)
    ]


def _growth(run: RunPoint, best: int) -> float:
    """Returns the points for new coverage in percent, or for new inputs if the engine counts
    none.
    """
    before = max(best, 0) if run.coverage >= 0 else run.corpus - run.new_inputs
    new = run.coverage - before if run.coverage >= 0 else run.new_inputs
    if new <= 0:
        return 0.0
    return min(100 * new / before, MAX_GROWTH) if before > 0 else MAX_GROWTH


def _why(one: Yield, anything: bool) -> str:
    if not one.runs:
        return "it never ran, so it counts as the best one" if anything else "it never ran"
    runs = "its last run" if one.runs == 1 else f"its last {one.runs} runs"
    if not one.points:
        return f"nothing new in {runs}"
    found = "1 new finding" if one.findings == 1 else f"{one.findings} new findings"
    found = found if one.findings else "new coverage or inputs"
    return f"{found} in {runs}, {format_duration(max(round(one.seconds), 1) * 1000)} in all"

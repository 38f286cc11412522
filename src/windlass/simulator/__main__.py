"""`python -m windlass.simulator`: run seeds, and say which one to repeat."""

import argparse
import sys
from collections import Counter

import msgspec

from windlass.simulator.run.simulation import Result, simulate


def main(arguments: list[str] | None = None) -> int:
    """Runs one seed or many; 1 if an invariant was broken."""
    options = _parser().parse_args(arguments)
    seeds = [options.seed] if options.seed is not None else range(1, options.seeds + 1)
    failed = 0
    totals: Counter[str] = Counter()
    for seed in seeds:
        result = simulate(seed, options.jobs)
        failed += bool(result.violations)
        totals.update({"jobs": result.jobs, "events": result.events, **result.faults})
        if options.json:
            print(msgspec.json.encode(result).decode())
        elif result.violations:
            _explain(result)
    if not options.json:
        _sum_up(len(seeds), failed, totals)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m windlass.simulator", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seed", type=int, help="run this one")
    which.add_argument("--seeds", type=int, default=100, help="run 1 to N (default: 100)")
    parser.add_argument("--jobs", type=int, help="submit so many (default: the seed decides)")
    parser.add_argument("--json", action="store_true", help="print each result as one line")
    return parser


def _explain(result: Result) -> None:
    print(f"seed {result.seed} ({result.store}, engines: {result.engines}) broke:")
    for violation in result.violations[:20]:
        where = f" job {violation.job}" if violation.job else ""
        event = f" at event {violation.seq}" if violation.seq else ""
        print(f"  {violation.invariant}{where}{event}: {violation.message}")
    print(f"  to repeat: python -m windlass.simulator --seed {result.seed}")


def _sum_up(seeds: int, failed: int, totals: Counter[str]) -> None:
    print(f"{seeds} seeds, {failed} broke an invariant")
    for name, count in sorted(totals.items()):
        print(f"  {name}: {count}")


if __name__ == "__main__":
    sys.exit(main())

"""`windlass simulate`: run seeds of the simulator, and say which one to repeat."""

import sys
from collections import Counter
from typing import Final

import msgspec

from windlass.cli.options.flags import Json, Misused
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.text import escape_json, say
from windlass.domain.values.errors import InvalidInput
from windlass.simulator.simulation import Result, simulate

SEEDS: Final = 100
SHOWN: Final = 20  # violations of one seed


def simulate_seeds(
    *,
    seed: int | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    json: Json = False,
) -> None:
    """Simulate a whole installation with faults, under seeds, and check the invariants.

    Servers, workers, clients, network and clock are simulated in this process; equal seeds give
    equal runs. Exits with 1 if an invariant was broken. With --json, each result is one line.

    Parameters
    ----------
    seed
        Run only this seed.
    seeds
        Run the seeds 1 to N. Default: 100.
    jobs
        Submit this many jobs. Default: the seed decides.
    """
    chosen = _seeds(seed, seeds)
    if jobs is not None and jobs < 1:
        raise InvalidInput("--jobs", "1 or more", jobs)
    failed = 0
    totals: Counter[str] = Counter()
    for number in chosen:
        result = simulate(number, jobs)
        failed += bool(result.violations)
        totals.update({"jobs": result.jobs, "events": result.events, **result.faults})
        if json:
            say(escape_json(msgspec.json.encode(result).decode()))
        elif result.violations:
            _explain(result)
        sys.stdout.flush()
    if not json:
        _sum_up(len(chosen), failed, totals)
    if failed:
        raise SystemExit(FAILED)


def _seeds(seed: int | None, seeds: int | None) -> range:
    if seed is not None and seeds is not None:
        raise Misused("--seed and --seeds exclude each other")
    if seed is not None:
        return range(seed, seed + 1)
    if seeds is not None and seeds < 1:
        raise InvalidInput("--seeds", "1 or more", seeds)
    return range(1, (seeds or SEEDS) + 1)


def _explain(result: Result) -> None:
    say(f"seed {result.seed} ({result.store}, engines: {result.engines}) broke:")
    for violation in result.violations[:SHOWN]:
        where = f" job {violation.job}" if violation.job else ""
        event = f" at event {violation.seq}" if violation.seq else ""
        say(f"  {violation.invariant}{where}{event}: {violation.message}")
    say(f"  to repeat: windlass simulate --seed {result.seed}")


def _sum_up(seeds: int, failed: int, totals: Counter[str]) -> None:
    say(f"{seeds} seed{'s' * (seeds != 1)}, {failed} broke an invariant")
    for name, count in sorted(totals.items()):
        say(f"  {name}: {count}")

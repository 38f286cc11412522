"""Same seed, same event log, to the byte, in whatever process it runs."""

import os
import subprocess
import sys

import pytest

from windlass.simulator import simulate
from windlass.simulator.scenario import draw

pytestmark = pytest.mark.slow


def first_seed(store: str, engines: int) -> int:
    return next(s for s in range(1, 1_000) if (draw(s).store, draw(s).engines) == (store, engines))


KINDS = (("memory", 1), ("memory", 2), ("sqlite", 1))
PROGRAM = """\
import sys
from windlass.simulator import simulate

print(*(simulate(int(seed)).log_hash for seed in sys.argv[1:]))
"""


def test_a_seed_is_the_same_in_every_process() -> None:
    """In two others, and in this one, whose hashes are random as well."""
    seeds = [first_seed(store, engines) for store, engines in KINDS]
    here = [simulate(seed).log_hash for seed in seeds]
    assert len(set(here)) == len(KINDS)
    for hash_seed in ("1", "2"):
        assert run_elsewhere(seeds, hash_seed) == here


def run_elsewhere(seeds: list[int], hash_seed: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, *map(str, seeds)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_other_seeds_have_other_logs() -> None:
    assert simulate(1).log_hash != simulate(2).log_hash


def test_what_comes_before_in_a_process_does_not_matter() -> None:
    alone = simulate(3).log_hash
    simulate(4)
    assert simulate(3).log_hash == alone

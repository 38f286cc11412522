"""Same seed, same event log, to the byte, in whatever process it runs."""

import os
import subprocess
import sys

import pytest

from windlass.simulator import simulate
from windlass.simulator.run.scenario import draw

pytestmark = pytest.mark.slow


def first_seed(store: str, engines: int) -> int:
    return next(s for s in range(1, 1_000) if (draw(s).store, draw(s).engines) == (store, engines))


@pytest.mark.parametrize(("store", "engines"), [("memory", 1), ("memory", 2), ("sqlite", 1)])
def test_a_seed_is_the_same_in_every_process(store: str, engines: int) -> None:
    seed = first_seed(store, engines)
    outputs = {run_elsewhere(seed, hash_seed) for hash_seed in ("1", "2", "random")}
    assert len(outputs) == 1
    assert simulate(seed).log_hash in outputs.pop()


def run_elsewhere(seed: int, hash_seed: str) -> str:
    command = [sys.executable, "-m", "windlass.simulator", "--seed", str(seed), "--json"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_other_seeds_have_other_logs() -> None:
    assert simulate(1).log_hash != simulate(2).log_hash


def test_what_comes_before_in_a_process_does_not_matter() -> None:
    alone = simulate(3).log_hash
    simulate(4)
    assert simulate(3).log_hash == alone

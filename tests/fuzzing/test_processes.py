"""Programs of a solver end within their bounds, and leave nothing running."""

import os
import sys
from pathlib import Path

import pytest

from tests.fuzzing.vanishing import until_gone
from tests.support.running import run as run_loop
from windlass.clock import RealClock
from windlass.domain.values.errors import InvalidInput
from windlass.fuzzing.processes import MIB, Bounds, Ended, family, run, tail

PATIENCE_MS = 60_000


def ended(folder: Path, script: str, bounds: Bounds) -> tuple[Ended, str]:
    log = folder / "log"
    done = run_loop(
        run(["sh", "-c", script], cwd=folder, log=log, bounds=bounds, clock=RealClock())
    )
    return done, tail(log)


def test_a_program_that_ends_is_told_by_its_code_and_its_words(tmp_path: Path) -> None:
    done, said = ended(tmp_path, "echo hello; echo trouble >&2; exit 3", Bounds(PATIENCE_MS))
    assert (done.code, done.reason, said) == (3, "exited", "hello\ntrouble\n")
    assert done.describe(Bounds(PATIENCE_MS)) == "ended with code 3"


def test_a_hanging_program_is_ended_with_all_it_started(tmp_path: Path) -> None:
    script = "sleep 600 & echo $!; trap '' TERM; while true; do sleep 600; done"
    done, said = ended(tmp_path, script, Bounds(300, grace_ms=200))
    assert done.reason == "timeout"
    run_loop(until_gone(int(said.split()[0])))


def test_what_a_program_leaves_running_goes_with_it(tmp_path: Path) -> None:
    done, said = ended(tmp_path, "sleep 600 & echo $!", Bounds(PATIENCE_MS))
    assert done.fine
    run_loop(until_gone(int(said)))


def test_what_leaves_the_group_is_ended_too(tmp_path: Path) -> None:
    script = "setsid sh -c 'echo $$; exec sleep 600' & wait"
    done, said = ended(tmp_path, script, Bounds(1_000, grace_ms=100))
    assert done.reason == "timeout"
    run_loop(until_gone(int(said)))


def test_memory_of_the_whole_family_is_bounded(tmp_path: Path) -> None:
    eat = "import time; x = bytearray(200 * 2**20); time.sleep(600)"
    script = f"{sys.executable} -c '{eat}' & {sys.executable} -c '{eat}' & wait"
    bounds = Bounds(PATIENCE_MS, memory=300 * MIB, grace_ms=100)
    done, _ = ended(tmp_path, script, bounds)
    assert done.reason == "memory"
    assert "used more than 300 MiB" in done.describe(bounds)


def test_address_space_is_bounded_by_the_kernel(tmp_path: Path) -> None:
    script = f"sleep 0.3; {sys.executable} -c 'bytearray(2**32)'"
    done, said = ended(tmp_path, script, Bounds(PATIENCE_MS, address_space=1024 * MIB))
    assert (done.code, "MemoryError" in said) == (1, True)


def test_output_is_bounded(tmp_path: Path) -> None:
    done, _ = ended(tmp_path, "yes", Bounds(PATIENCE_MS, output=MIB, grace_ms=100))
    assert done.reason == "output"


def test_a_log_that_rolls_ends_nobody(tmp_path: Path) -> None:
    script = (
        "yes | head -c 3000000; while [ $(stat -c %s log) -gt 1000000 ]; do sleep 0.05; done; "
        "echo last words"
    )
    done, said = ended(tmp_path, script, Bounds(PATIENCE_MS, output=MIB, rolling=True))
    assert (done.fine, said) == (True, "last words\n")


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no-such-program"):
        run_loop(
            run(["/no-such-program"], cwd=tmp_path, log=tmp_path / "log", clock=RealClock(),
                bounds=Bounds(1_000))
        )  # fmt: skip


def test_a_family_is_a_group_and_its_descendants() -> None:
    assert os.getpid() in family(os.getpgid(0))

"""Programs of a solver stay within their limits and leave nothing running."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fuzzing.support.process_exit import until_gone
from tests.support.running import run as run_loop
from windlass.clock import RealClock
from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.processes.runner import (
    MIB,
    SMALL_PARENT,
    ExitStatus,
    Limits,
    process_tree,
    run,
    tail,
)

PATIENCE_MS = 60_000


class SkippingClock(RealClock):
    """A real clock that skips ahead of every timeout once a program has written something."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    def now_ms(self) -> int:
        written = self._log.exists() and self._log.stat().st_size > 0
        return super().now_ms() + (2 * PATIENCE_MS if written else 0)


def ended(
    folder: Path,
    script: str,
    limits: Limits,
    *,
    times_out: bool = False,
    words: Sequence[str] = (),
) -> tuple[ExitStatus, str]:
    """Runs a shell script; one that `times_out` does so as soon as it has written something."""
    log = folder / "log"
    clock = SkippingClock(log) if times_out else RealClock()
    argv = [*words, "sh", "-c", script]
    done = run_loop(run(argv, cwd=folder, log=log, limits=limits, clock=clock))
    return done, tail(log)


def test_the_exit_code_and_the_output_are_reported(tmp_path: Path) -> None:
    done, said = ended(tmp_path, "echo hello; echo trouble >&2; exit 3", Limits(PATIENCE_MS))
    assert (done.code, done.reason, said) == (3, "exited", "hello\ntrouble\n")
    assert done.describe(Limits(PATIENCE_MS)) == "exited with code 3"


def test_a_hanging_program_is_ended_with_all_it_started(tmp_path: Path) -> None:
    script = "sleep 600 & echo $!; trap '' TERM; while true; do sleep 600; done"
    done, said = ended(tmp_path, script, Limits(PATIENCE_MS, grace_ms=200), times_out=True)
    assert done.reason == "timeout"
    run_loop(until_gone(int(said.split()[0])))


def test_what_a_program_leaves_running_goes_with_it(tmp_path: Path) -> None:
    done, said = ended(tmp_path, "sleep 600 & echo $!", Limits(PATIENCE_MS))
    assert done.ok
    run_loop(until_gone(int(said)))


def test_what_leaves_the_group_is_ended_too(tmp_path: Path) -> None:
    script = "setsid sh -c 'echo $$; exec sleep 600' & wait"
    done, said = ended(tmp_path, script, Limits(PATIENCE_MS, grace_ms=100), times_out=True)
    assert done.reason == "timeout"
    run_loop(until_gone(int(said)))


def test_memory_of_the_whole_family_is_bounded(tmp_path: Path) -> None:
    eat = "import time; x = bytearray(200 * 2**20); time.sleep(600)"
    script = f"{sys.executable} -c '{eat}' & {sys.executable} -c '{eat}' & wait"
    limits = Limits(PATIENCE_MS, memory=300 * MIB, grace_ms=100)
    done, _ = ended(tmp_path, script, limits)
    assert done.reason == "memory"
    assert "used more than 300 MiB" in done.describe(limits)


def test_address_space_is_bounded_by_the_kernel(tmp_path: Path) -> None:
    """The script waits until it was polled once: the limit is set before that."""
    log, polled = tmp_path / "log", tmp_path / "polled"
    script = f"while [ ! -e {polled} ]; do sleep 0.05; done; {sys.executable} -c 'bytearray(2**32)'"
    limits = Limits(PATIENCE_MS, address_space=1024 * MIB)
    done = run_loop(
        run(["sh", "-c", script], cwd=tmp_path, log=log, limits=limits, clock=RealClock(),
            on_poll=polled.touch)
    )  # fmt: skip
    assert (done.code, "MemoryError" in tail(log)) == (1, True)


def test_output_is_bounded(tmp_path: Path) -> None:
    done, _ = ended(tmp_path, "yes", Limits(PATIENCE_MS, output=MIB, grace_ms=100))
    assert done.reason == "output"


def test_error_output_of_its_own_and_files_are_bounded_too(tmp_path: Path) -> None:
    def run_script(script: str, limits: Limits) -> ExitStatus:
        return run_loop(
            run(
                ["sh", "-c", script], cwd=tmp_path, log=tmp_path / "log", limits=limits,
                errors=tmp_path / "errors", clock=RealClock(),
            )
        )  # fmt: skip

    limits = Limits(10_000, output=MIB, grace_ms=100)
    assert run_script("yes >&2", limits).reason == "output"
    written = run_script("head -c 9000000 /dev/zero > file", Limits(10_000, file_size=MIB))
    assert not written.ok
    assert MIB <= (tmp_path / "file").stat().st_size <= 2 * MIB


def test_a_rolling_log_does_not_stop_the_program(tmp_path: Path) -> None:
    script = (
        "yes | head -c 3000000; while [ $(stat -c %s log) -gt 1000000 ]; do sleep 0.05; done; "
        "echo last words"
    )
    done, said = ended(tmp_path, script, Limits(PATIENCE_MS, output=MIB, rolling=True))
    assert (done.ok, said) == (True, "last words\n")


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no-such-program"):
        run_loop(
            run(["/no-such-program"], cwd=tmp_path, log=tmp_path / "log", clock=RealClock(),
                limits=Limits(1_000))
        )  # fmt: skip


def test_a_family_is_a_group_and_its_descendants() -> None:
    assert os.getpid() in process_tree(os.getpgid(0))


def test_a_program_with_a_small_parent_does_not_count_our_memory_as_its_own(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    script = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    ours = b"x" * (300 * MIB)
    argv = [*SMALL_PARENT, sys.executable, "-I", "-S", "-c", script]
    limits = Limits(PATIENCE_MS)
    assert run_loop(run(argv, cwd=tmp_path, log=log, limits=limits, clock=RealClock())).ok
    assert int(tail(log)) < len(ours) // MIB // 2


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0), ("exit 77", 77), ("exit 139", 139), ("exit 143", 143), ("exit 255", 255),
        ("kill -ABRT $$", -6), ("kill -KILL $$", -9), ("kill -SEGV $$", -11), ("kill $$", -15),
    ],
)  # fmt: skip
def test_a_small_parent_ends_as_its_program_did(tmp_path: Path, script: str, code: int) -> None:
    done, _ = ended(tmp_path, script, Limits(PATIENCE_MS), words=SMALL_PARENT)
    assert (done.code, done.reason) == (code, "exited")


def test_a_program_with_a_small_parent_has_its_time_to_end(tmp_path: Path) -> None:
    # Without a child: shells tell of one that a signal ended.
    script = "trap 'echo bye; exit 0' TERM; echo begun; while true; do true; done"
    limits = Limits(PATIENCE_MS, grace_ms=PATIENCE_MS)
    done, said = ended(tmp_path, script, limits, times_out=True, words=SMALL_PARENT)
    assert (done.reason, said) == ("timeout", "begun\nbye\n")

"""What a job of the same user can read of the processes above it: nothing.

A process with CAP_SYS_PTRACE may read everything, so where the tests are run by root, these
give up all capabilities.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import windlass
from tests.support.plain_user import as_user
from windlass.worker.agent.state import recall

MAX_S: Final = 120
SECRET: Final = "hunter2-in-the-environment"
SOURCES: Final = str(Path(windlass.__file__).parents[1])

VICTIM: Final = """
import os, sys
from windlass.worker.keeper import processes
processes.become_private()
child = os.fork()
if child == 0:
    os.execv("/bin/sleep", ["sleep", "60"])
open("/proc/self/cgroup").close()
open("/proc/self/mountinfo").close()
assert processes.look_at(os.getpid()).pid == os.getpid()
assert processes.children_of(os.getpid()) == [child]
assert processes.resident_bytes(os.getpid()) > 0
while not processes.environ_of(child):
    pass  # until it has become the program
print(os.getpid(), flush=True)
sys.stdin.read()
os.kill(child, 9)
"""
# Prints what it could read of the process with this number.
THIEF: Final = """
import os, sys
place = f"/proc/{sys.argv[1]}"
for name in ("environ", "mem", "fd", "maps"):
    try:
        os.readlink(f"{place}/fd/0") if name == "fd" else open(f"{place}/{name}", "rb").close()
    except PermissionError:
        continue
    print(name)
"""
# A job that reads its keeper, its agent and `windlass up`, one above the other.
LOOK: Final = """
process=$$
for above in keeper agent up; do
    process=$(awk '{print $4}' /proc/$process/stat)
    cat /proc/$process/environ && echo $above is open || echo $above is closed
    cat /proc/$process/cmdline
done 2>/dev/null
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short name, for sockets."""
    with tempfile.TemporaryDirectory(prefix="windlass-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _environment(place: Path) -> dict[str, str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("WINDLASS_", "PYTEST_"))}
    return {
        **kept, "PYTHONPATH": SOURCES, "HOME": str(place), "TMPDIR": str(place),
        "WINDLASS_DATA": str(place / "data"), "COLUMNS": "200", "WINDLASS_ISOLATION": "process",
    }  # fmt: skip


def test_finding_6_a_private_process_is_closed_to_its_user_and_still_sees_itself(
    place: Path,
) -> None:
    environment = _environment(place)
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM], env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, cwd=place, **as_user(),
    ) as victim:  # fmt: skip
        assert victim.stdout is not None
        number = victim.stdout.readline().strip()
        assert number, "it cannot read what it needs of itself"
        seen = subprocess.run(
            [sys.executable, "-c", THIEF, number], env=environment, capture_output=True,
            text=True, timeout=MAX_S, check=True, cwd=place, **as_user(),
        )  # fmt: skip
        assert seen.stdout == ""
        victim.communicate("")


def test_finding_6_a_job_finds_no_tokens_in_the_processes_above_it(place: Path) -> None:
    """`windlass up` and its worker run as this user, with a secret in the environment."""
    environment = _environment(place)
    program = [sys.executable, "-m", "windlass"]
    given = {"WINDLASS_SECRET_DB": SECRET}
    with subprocess.Popen(
        [*program, "up", "--port", "0", "--workers", "1", "--slots", "2"],
        env=environment | given, stdout=subprocess.PIPE, text=True, cwd=place, **as_user(),
    ) as up:  # fmt: skip
        try:
            assert up.stdout is not None
            assert "windlass is up" in up.stdout.readline()
            ran = subprocess.run(
                [*program, "run", "--", "sh", "-c", LOOK], env=environment, capture_output=True,
                text=True, timeout=MAX_S, check=False, cwd=place, **as_user(),
            )  # fmt: skip
            assert ran.returncode == 0, (ran.stdout, ran.stderr)
            for above in ("keeper", "agent", "up"):
                assert f"{above} is closed" in ran.stdout, ran.stdout
            assert "--state" in ran.stdout  # the agent's command line was read
            for start in ("wl_", "enrol_", SECRET):
                assert start not in ran.stdout, ran.stdout
            (state,) = (place / "data" / "workers").iterdir()
            assert recall(state).incarnation > 0
            assert recall(state).token is None
        finally:
            up.terminate()
            up.communicate(timeout=MAX_S)

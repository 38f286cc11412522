"""A process that used the client of S3 ends with its own exit code, and has said all it said."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import obstore
from windlass.cli.app import run_and_exit

class Late:
    def __del__(self):
        sys.stderr.write("taken down\\n")

def run():
    global late
    late = Late()
    sys.stdout.write("x" * 100_000)
    {end}

run_and_exit(run)
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [("pass", 0), ("raise SystemExit(4)", 4), ("raise SystemExit", 0), ("sys.exit('no')", 1)],
)
def test_the_exit_code_and_the_output_stay(end: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(end=end)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, len(done.stdout)) == (code, 100_000)


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)"])
def test_without_that_client_python_ends_without_a_search_for_garbage(end: str) -> None:
    frozen = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 1000))"
    program = f"{frozen}{PROGRAM.format(end=end).replace('import obstore', '')}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout.lstrip("x"), done.stderr) == ("True\n", "")


def test_the_interpreter_is_not_taken_down() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(end="pass")], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stderr == ""

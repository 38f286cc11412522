"""Makes sure that our programs end when we are killed: a small guard process cleans up.

A killed process (SIGKILL) cannot stop the build or fuzzer it runs. Each program therefore gets
a mark in its environment, which everything it starts inherits. The guard reads a pipe that
only this process keeps open. When this process ends, for whatever reason, the guard kills
every process with the mark.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from windlass.fuzzing.processes import guard_program

VARIABLE: Final = "WINDLASS_FUZZ_GUARD"


def guarded_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns an environment for a program (by default our own) with the mark of this process."""
    return {**(os.environ if env is None else env), VARIABLE: _start(os.getpid())}


@functools.cache
def _start(pid: int) -> str:
    """Starts the guard of a process once, and returns its mark.

    The write end of the pipe stays open until the process ends, and no child inherits it. If
    the guard cannot be started, the work continues without it.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        began = file.read().rpartition(b")")[2].split()[19].decode()
    mark = f"{pid}-{began}"  # a pid may be reused, but not with the same start time
    reading, _ = os.pipe()
    try:
        subprocess.run(
            [sys.executable, "-I", "-S", Path(guard_program.__file__), f"{VARIABLE}={mark}"],
            stdin=reading, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except OSError:
        pass
    finally:
        os.close(reading)
    return mark

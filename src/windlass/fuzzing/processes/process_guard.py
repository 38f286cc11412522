"""Makes sure that our programs end when we are killed: a small guard process cleans up.

A killed process (SIGKILL) cannot stop the build or fuzzer it runs. Each program therefore gets
a mark in its environment, which everything it starts inherits. The guard waits for the end of
this process. When that comes, for whatever reason, it kills every process with the mark.
"""

import contextlib
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

    If the guard cannot be started, the work continues without it.
    """
    began = guard_program.start_time(pid)
    mark = f"{pid}-{began}"  # a pid may be reused, but not with the same start time
    with contextlib.suppress(OSError):
        subprocess.run(
            [sys.executable, "-I", "-S", Path(guard_program.__file__), VARIABLE, str(pid), began],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
    return mark

"""Nothing of ours goes on when we are killed: a small process watches over us, and cleans up.

Whoever is killed (−9) cannot end the build or the fuzzer that it runs. So each program gets a
mark in its environment, which everything that it starts inherits, and a guard holds the other
end of a pipe that only this process keeps open. When that ends, whatever the reason, the guard
ends all that carry the mark.
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
    """An environment for a program, by default our own, with the mark of this process."""
    return {**(os.environ if env is None else env), VARIABLE: _start(os.getpid())}


@functools.cache
def _start(pid: int) -> str:
    """Start the guard of a process, once; its mark.

    The end of the pipe stays open until the process ends, and is inherited by nobody. Where no
    guard can be started the work goes on without: it is there for the worst case only.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        began = file.read().rpartition(b")")[2].split()[19].decode()
    mark = f"{pid}-{began}"  # a number may come back; at another time
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

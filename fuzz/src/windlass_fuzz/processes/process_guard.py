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

from windlass_fuzz.processes import guard_program

VARIABLE: Final = "WINDLASS_FUZZ_GUARD"
# A git hook that starts us sets these for its own repository; ours are different.
_OF_HOOKS: Final = frozenset((
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_IMPLICIT_WORK_TREE",
))  # fmt: skip


def guarded_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns an environment for a program (by default our own) with the mark of this process.

    In it, git finds its repository by the folder that it runs in.
    """
    given = os.environ if env is None else env
    kept = {name: value for name, value in given.items() if name not in _OF_HOOKS}
    return {**kept, VARIABLE: _start(os.getpid())}


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

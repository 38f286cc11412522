"""Ends the process at once if the S3 client was used.

A thread of the S3 client that answers during interpreter shutdown aborts the process
(`blobs/last_answers.py` explains why). Normally the program waits for answers, but an interrupted
command may have abandoned requests whose answers arrive at any time. So a command that loaded the
S3 client flushes its output and exits without shutting down the interpreter.

Other commands shut it down without a search for garbage. Either way, files must be closed by those
who opened them.
"""

import gc
import os
import sys
from collections.abc import Callable
from typing import Final

from windlass.cli.output.exit_codes import FAILED, OK

S3_CLIENT: Final = "obstore"


def run_and_exit(run: Callable[[], None]) -> None:
    """Runs the program and exits with its exit code."""
    try:
        run()
        code: object = OK
    except SystemExit as end:
        code = end.code
        if S3_CLIENT not in sys.modules or isinstance(code, str):
            raise
    finally:
        gc.freeze()  # Else Python looks for cycles in all modules as it ends, which takes 0.2 s.
    if S3_CLIENT in sys.modules:
        _exit_now(code)


def _exit_now(code: object) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or FAILED
    os._exit(code if isinstance(code, int) else OK)

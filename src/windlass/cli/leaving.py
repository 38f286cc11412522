"""The end of the process, where threads of a library would not let it end in peace.

A thread of the client of S3 that answers while the interpreter is taken down aborts the process
(`blobs/last_answers.py` has the whole story). Programs wait for answers that are being given; but
a command that was interrupted may have broken off requests whose answers are still to come, and
nobody can tell when. So a command that has used the client flushes what it said and leaves at
once, as all of its work is done.
"""

import os
import sys
from collections.abc import Callable
from typing import Final

from windlass.cli.output import FAILED, OK

THREADED: Final = "obstore"


def run_and_leave(run: Callable[[], None]) -> None:
    """Run the program; its exit code is that of `run`."""
    try:
        run()
        code: object = OK
    except SystemExit as end:
        code = end.code
        if THREADED not in sys.modules or isinstance(code, str):
            raise
    if THREADED in sys.modules:
        _leave(code)


def _leave(code: object) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or FAILED
    os._exit(code if isinstance(code, int) else OK)

"""Environment variables that functions miss: jobs see few of those that their worker has.

The child process knows which one it was, and only the worker knows whether it has it. Values are
never read.
"""

import os
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Final

from windlass.domain.values.errors import causes_of

OWN_START: Final = "WINDLASS_"  # never passed
_LOOK_UP: Final = type(os.environ).__getitem__.__code__
# Messages of python-decouple, environs, django-environ and starlette.
_SAYS: Final = re.compile(
    r"^(?P<a>[A-Za-z_]\w*) not found\. Declare it as envvar"
    r"|Environment variable \"(?P<b>[A-Za-z_]\w*)\" not set"
    r"|Set the (?P<c>[A-Za-z_]\w*) environment variable"
    r"|Config '(?P<d>[A-Za-z_]\w*)' is missing"
)


def missing_variable(error: BaseException) -> str | None:
    """Returns the variable that a function did not find, if it failed for that reason."""
    for cause in causes_of(error):
        if isinstance(cause, KeyError) and _raised_in(cause.__traceback__) is _LOOK_UP:
            name = cause.args[0]
            return name if isinstance(name, str) else None
        said = _SAYS.search(str(cause.args[0])) if cause.args else None
        if said is not None:
            return str(next(filter(None, said.groups())))
    return None


def _raised_in(trace: TracebackType | None) -> object:
    """Returns the code of the function that raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_code


def advise(name: str | None, environ: Mapping[str, str]) -> str:
    """Returns what a worker with this environment adds to the failure, if anything."""
    if name is None or name.startswith(OWN_START):
        return ""
    if name in environ:
        return (
            f"; the worker has {name} but does not pass it to jobs: start it with --pass-env {name}"
        )
    return (
        f"; the worker has no {name} either: set it where the worker starts, and start it with "
        f"--pass-env {name}"
    )

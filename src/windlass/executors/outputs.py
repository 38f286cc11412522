"""The outputs of a program: what it writes to the file `$WINDLASS_OUTPUTS`."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from windlass.ports.executor import Result

VARIABLE: Final = "WINDLASS_OUTPUTS"
FILE: Final = ".windlass-outputs"
MAX_BYTES: Final = 1 << 20


def with_outputs(result: Result, folder: Path, names: Sequence[str]) -> Result:
    """Returns the program's end with its outputs as the result; it failed if one is missing."""
    written = _read(folder / FILE)
    if isinstance(written, str):
        return _failed(written)
    missing = [name for name in names if name not in written]
    if missing:
        return _failed(f"the job did not write its output {missing[0]}: {missing[0]}=VALUE")
    found = {name: value for name, value in written.items() if name in names}
    body = msgspec.json.encode(found)
    return msgspec.structs.replace(result, result=found, size=len(body))


def _failed(problem: str) -> Result:
    message = f"{problem}, in the file ${VARIABLE}"
    return Result(outcome="failed", failure="execution", exit_code=0, message=message)


def _read(path: Path) -> dict[str, Any] | str:
    """Returns the outputs in a file that a job has made, or what is wrong with it."""
    try:
        # The job may have put anything there: we follow no link and wait for no pipe.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    except OSError as error:
        return f"the outputs cannot be read ({error.strerror})"
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return "the outputs are not a regular file"
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        return f"the outputs are longer than {MAX_BYTES} bytes"
    return _parse(content)


def _parse(content: bytes) -> dict[str, Any] | str:
    """Returns lines with NAME=VALUE, or one JSON object."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "the outputs are not UTF-8 text"
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.MsgspecError:
            return "the outputs are not a valid JSON object"
    found: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, sign, value = line.partition("=")
        if sign:
            found[name.strip()] = value
        elif line.strip():
            return f"line {number} of the outputs is not NAME=VALUE"
    return found

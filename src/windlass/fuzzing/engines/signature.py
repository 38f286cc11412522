"""Identifies a bug by the place and kind of the failure, without the parts that vary.

Line numbers, addresses, temporary names and values differ between two inputs, or two commits,
that show the same bug. The signature leaves them out, so that it stays the same while the code
around the bug changes.
"""

import hashlib
import re
from typing import Final

from windlass.fuzzing.processes.runner import ExitStatus, signal_name

FRAMES: Final = 3
KEY_LENGTH: Final = 16
TITLE_LENGTH: Final = 200
LINE_LENGTH: Final = 2_000  # a report says more in no line; the patterns take long for long lines
SHELL_SIGNALS: Final = 128  # a shell reports a signal as this number plus the signal's

_FRAME: Final = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ in (.+?)(?: \(.*\)| [^ ]*)?$", re.MULTILINE)
_SANITIZER: Final = re.compile(r"ERROR: (\w+Sanitizer|libFuzzer): ([\w-]+(?: [\w-]+)?)")
_UNDEFINED: Final = re.compile(r"^(\S+?):\d+:\d+: runtime error: (.+)$", re.MULTILINE)
_ASSERTION: Final = re.compile(r"(?<!\S)(\S+?):\d+: (.*?):? ?Assertion [`'](.+)' failed")
_VIOLATION: Final = re.compile(
    r"ASSERTION VIOLATION\s+File: (\S+)\s+Line: \d+\s+(.+)$", re.MULTILINE
)
_FATAL: Final = re.compile(
    r"Fatal failure within (.+?) at (\S+?):\d+\s+(?:\w+ failure\s+)?(.*)$", re.MULTILINE
)
_THROWN: Final = re.compile(
    r"terminate called after throwing an instance of '(.+?)'(?:\s+what\(\):\s+(.+))?"
)
_RUNTIME: Final = (
    "__asan", "__interceptor", "__sanitizer", "__ubsan", "__libc", "__GI_", "__assert",
    "fuzzer::", "abort", "raise", "gsignal", "std::", "operator new", "LLVMFuzzer", "main",
    "_start", "pthread_kill",
)  # fmt: skip
_VARYING: Final = (
    (re.compile(r"0x[0-9a-fA-F]+"), "*"),
    (re.compile(r"(?:/[\w.+-]+)+/"), ""),
    (re.compile(r"\d+"), "N"),
)
OUT_OF_MEMORY: Final = ("std::bad_alloc", "out of memory", "MemoryError", "Cannot allocate memory")


def key_of(title: str) -> str:
    """Returns the key under which a bug is stored."""
    return hashlib.sha256(title.encode()).hexdigest()[:KEY_LENGTH]


def title_of(output: str, ended: ExitStatus) -> str:
    """Returns one line that is the same for all inputs that show the same bug."""
    output = "\n".join(line[:LINE_LENGTH] for line in output.splitlines())
    for describe in (_sanitizer, _undefined, _assertion, _thrown):
        if (title := describe(output)) is not None:
            return title[:TITLE_LENGTH]
    return _plain(output, ended)[:TITLE_LENGTH]


def crashed(ended: ExitStatus) -> bool:
    """Returns whether a signal ended the program, directly or reported by a shell."""
    return signal_of(ended.code) is not None


def signal_of(code: int) -> int | None:
    """Returns the signal that an exit code stands for, if any."""
    if code < 0:
        return -code
    return code - SHELL_SIGNALS if SHELL_SIGNALS < code < SHELL_SIGNALS + 32 else None


def normalise(text: str) -> str:
    """Removes addresses, folders and numbers from a line."""
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return " ".join(text.split())


def _sanitizer(output: str) -> str | None:
    found = _SANITIZER.search(output)
    if found is None:
        return None
    stack = output[found.start() :].partition("\n\n")[0]
    frames = [_function(frame) for frame in _FRAME.findall(stack)]
    own = [frame for frame in frames if not frame.startswith(_RUNTIME)][:FRAMES]
    kind = "" if found[2].startswith("deadly") else found[2].removesuffix(" on")
    if not kind:
        assertion = _assertion(output) or _thrown(output)
        kind = "deadly signal" if assertion is None else assertion
    return f"{found[1]}: {kind} in {' < '.join(own)}" if own else f"{found[1]}: {kind}"


def _function(frame: str) -> str:
    """Returns the function of a stack frame without its (possibly endless) parameters."""
    return frame.partition("(")[0].strip() or frame


def _undefined(output: str) -> str | None:
    found = _UNDEFINED.search(output)
    return None if found is None else f"{_file(found[1])}: {normalise(found[2])}"


def _assertion(output: str) -> str | None:
    if (found := _ASSERTION.search(output)) is not None:
        where = _function(found[2]).split(" ")[-1]
        return f"assertion `{found[3]}` in {_file(found[1])} {where}".strip()
    if (found := _VIOLATION.search(output)) is not None:
        return f"assertion `{found[2].strip()}` in {_file(found[1])}"
    if (found := _FATAL.search(output)) is not None:
        where = _function(found[1]).split(" ")[-1]
        return f"fatal failure `{found[3].strip()}` in {_file(found[2])} {where}"
    return None


def _thrown(output: str) -> str | None:
    found = _THROWN.search(output)
    if found is None:
        return None
    return f"uncaught {found[1]}" + (f": {normalise(found[2])}" if found[2] else "")


def _plain(output: str, ended: ExitStatus) -> str:
    """Falls back to the exit status and the last line of output."""
    number = signal_of(ended.code)
    how = f"exit code {ended.code}" if number is None else signal_name(number)
    lines = [line for line in output.splitlines() if line.strip()]
    return f"{how}: {normalise(lines[-1])}" if lines else how


def _file(path: str) -> str:
    return path.rpartition("/")[2]

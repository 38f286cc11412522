"""Stack frames: read from reports, without the varying parts and the uninformative frames."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from windlass_fuzz.config.finding_settings import SignatureSettings

LINE_LENGTH: Final = 500
DEEPEST: Final = 200  # frames read from a report; a deeper stack counts as endless
RECURSIVE: Final = 3  # a function that occurs this often on an endless stack is recursive

_FRAME: Final = re.compile(r"^\s*#\d+\s+(?:(0x[0-9a-f]+)\s+in\s+)?(\S.*)$")
_PLACE: Final = re.compile(
    r"\s(?=\(?/|<null>|\(BuildId|\(<unknown|[^\s()<>]+:\d+(?::\d+)?(?:\s|$))"
)
_SUFFIX: Final = re.compile(
    r"(?:\.(?:part|isra|constprop|cold|lto_priv|llvm)(?:\.\d+)*|\[abi:\w+\]|::h[0-9a-f]{16})+$"
)
_LAMBDA: Final = re.compile(r"\{lambda\b.*?#\d+\}|'lambda\d*'")
_RUNTIME: Final = re.compile(
    r"__asan|__interceptor|___interceptor|__sanitizer|__ubsan|__lsan|__msan|__tsan|__libc|__GI_|"
    r"__assert|__cxa|__gxx|__cxxabi|__pthread|__kernel|_Unwind|__gnu_cxx|__verbose_terminate|"
    r"fuzzer::|LLVMFuzzer|"
    r"(?:abort|raise|gsignal|pthread_kill|main|_start|start_thread|clone3?|malloc|calloc|realloc|"
    r"free|memcpy|memmove|memset|strlen|strcmp|strcpy|operator new(?:\[\])?|"
    r"operator delete(?:\[\])?|\?\?|<unknown>)$|std::|void std::"
)
_LIBRARY: Final = re.compile(
    r"\(?(?:/usr)?/lib(?:32|64)?/|\(?/usr/include/|\.so(?:\.\d+)*(?:\+|\)|$)|libsanitizer|"
    r"(?:^|/)sysdeps/|(?:^|/)nptl/|compiler-rt/"
)


_LINE: Final = re.compile(r"([^\s:]+):(\d+)(?::\d+)?$")


class Frame(NamedTuple):
    """One frame: a function, its file or library, and whether it was inlined into the next."""

    function: str
    place: str = ""
    inlined: bool = False


def frames_in(report: str) -> list[Frame]:
    """Reads the first stack of a sanitizer's report, innermost frame first.

    Functions that were inlined into the next one share its address.
    """
    found: list[tuple[str, str, str]] = []
    for line in report.splitlines():
        match = _FRAME.match(line[:LINE_LENGTH])
        if match is None:
            if found:
                break
            continue
        place = _PLACE.search(match[2])
        function = match[2] if place is None else match[2][: place.start()]
        found.append((match[1] or "", function, "" if place is None else match[2][place.end() :]))
        if len(found) >= DEEPEST:
            break
    callers = [*(address for address, _, _ in found[1:]), ""][: len(found)]
    return [
        Frame(function, place, bool(address) and address == caller)
        for (address, function, place), caller in zip(found, callers, strict=True)
    ]


def line_in(report: str, functions: Collection[str]) -> tuple[str, int] | None:
    """Returns file and line of the innermost of these functions on the first stack of a report."""
    for frame in frames_in(report):
        place = _LINE.match(frame.place)
        if place is not None and clean_function(frame.function) in functions:
            return place[1], int(place[2])
    return None


def own_functions(
    frames: Sequence[Frame], rules: SignatureSettings, *, overflow: bool | None = None
) -> tuple[str, ...]:
    """Returns the functions that identify a stack, innermost first, as many as the rules say."""
    return own_stack(frames, rules, overflow=overflow)[: rules.frames]


def own_stack(
    frames: Sequence[Frame], rules: SignatureSettings, *, overflow: bool | None = None
) -> tuple[str, ...]:
    """Returns the program's own functions on a stack, innermost first.

    `overflow` says whether the stack was full; if unknown, a very deep one counts as full.
    """
    own = [frame for frame in frames if not _skipped(frame, rules)]
    if not rules.inlined:
        own = [frame for frame in own if not frame.inlined] or own
    names = [clean_function(frame.function) for frame in own]
    full = len(frames) >= DEEPEST if overflow is None else overflow
    return (_recursive(names) if full else ()) or _without_loops(names)


def on_all(stacks: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Returns the functions on all stacks of a program that hangs, innermost first.

    What its loop calls comes and goes.
    """
    first, *others = [one for one in stacks if one] or [()]
    return tuple(name for name in first if all(name in other for other in others))


def clean_function(name: str) -> str:
    """Returns a function without parameters, template arguments and compiler suffixes."""
    name = name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator{}")
    name = _LAMBDA.sub("{lambda}", name)
    name = name.partition("(")[0].strip()
    if "operator" not in name:
        name = _without_brackets(name).split(" ")[-1]
    return _SUFFIX.sub("", name)


def _without_brackets(name: str) -> str:
    """Removes template arguments, however deep they are nested."""
    depth = 0
    kept = []
    for letter in name:
        if letter == ">":
            depth = max(depth - 1, 0)
        elif letter == "<":
            depth += 1
        elif depth == 0:
            kept.append(letter)
    return "".join(kept)


def _skipped(frame: Frame, rules: SignatureSettings) -> bool:
    plain = clean_function(frame.function)
    if not plain or _RUNTIME.match(plain) or _RUNTIME.match(frame.function):
        return True
    if _LIBRARY.search(frame.place):
        return True
    return any(
        re.search(pattern, frame.function) or re.search(pattern, frame.place)
        for pattern in rules.ignore
    )


def _recursive(functions: Iterable[str]) -> tuple[str, ...]:
    """Returns the functions of an endless recursion, sorted, since the place where it ended is
    random.
    """
    return tuple(sorted(name for name, count in Counter(functions).items() if count >= RECURSIVE))


def _without_loops(functions: Sequence[str]) -> tuple[str, ...]:
    """Leaves out the frames between two calls of a function: the nesting of an input says
    nothing.
    """
    last = {name: place for place, name in enumerate(functions)}
    kept, place = [], 0
    while place < len(functions):
        kept.append(functions[place])
        place = last[functions[place]] + 1
    return tuple(kept)

"""Recognises the reports of sanitizers, whatever the exit code of the program is."""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Final, Literal, NamedTuple

DRIVER: Final = "libFuzzer"
MAX_REPORTS: Final = 20
_REPORT: Final = re.compile(
    r"(?:ERROR|WARNING): (AddressSanitizer|HWAddressSanitizer|LeakSanitizer|MemorySanitizer|"
    r"ThreadSanitizer|UndefinedBehaviorSanitizer|DataFlowSanitizer|libFuzzer): (.*)"
)
_UNDEFINED: Final = re.compile(r"^(\S[^\n]*?):\d+(?::\d+)?: runtime error: (.+)$", re.MULTILINE)
_MEMORY: Final = re.compile(
    r"out[ -]of[ -]memory|allocation-size-too-big|requested allocation size|failed to allocate|"
    r"rss limit exhausted|malloc limit exceeded"
)
_LEAK: Final = re.compile(r"^(?:Direct|Indirect) leak of", re.MULTILINE)
_WORDS: Final = re.compile(r"[\w-]+(?: [\w-]+)?")
_CANNOT_START: Final = re.compile(
    r"ReserveShadowMemoryRange failed|Sanitizer(?: failed to allocate|: CHECK failed: "
    r"sanitizer_(?:allocator|common|posix|linux))|Shadow memory range interleaves|"
    r"Sanitizer: internal allocator is out of memory|Failed to protect the shadow gap|"
    r"ERROR: Failed to mmap"
)
ASSERTIONS: Final = "assertions"
# Texts in the files of a build that can report such a failure.
MARKS: Final[Mapping[str, tuple[str, ...]]] = {
    "AddressSanitizer": ("__asan_",),
    "HWAddressSanitizer": ("__hwasan_",),
    "LeakSanitizer": ("__lsan_", "liblsan", "__asan_"),
    "MemorySanitizer": ("__msan_",),
    "ThreadSanitizer": ("__tsan_",),
    "UndefinedBehaviorSanitizer": ("__ubsan_", "libubsan", "UndefinedBehaviorSanitizer"),
    ASSERTIONS: ("__assert_fail", "__assert_rtn", "Assertion `"),
}
_DEADLY: Final = ("deadly signal", "fuzz target exited", "fuzz target overwrites")


class SanitizerReport(NamedTuple):
    """What a sanitizer reports: which one, the kind of error, and the text from there on."""

    tool: str
    error: str
    kind: Literal["sanitizer", "leak", "memory", "signal"]
    text: str
    file: str = ""

    def repeats(self, data: bytes) -> bool:
        """Returns whether its first line is in the input, which the program may have printed."""
        return self.text.partition("\n")[0].strip().encode() in data


def report_of_run(output: str, errors: str, *, failed: bool) -> SanitizerReport | None:
    """Returns the report of a run with this output and these `errors` on its error output.

    Sanitizers write there, and continue or make the program fail. What a successful program prints
    elsewhere is its answer, whatever it looks like.
    """
    return sanitizer_report(errors) or (sanitizer_report(output) if failed else None)


def report_before_limit(errors: str) -> SanitizerReport | None:
    """Returns what a sanitizer reported before a program was stopped: that is still a bug.

    libFuzzer's own message is then about the limit.
    """
    report = sanitizer_report(errors)
    found = report is not None and report.tool != DRIVER and report.kind in {"sanitizer", "leak"}
    return report if found else None


def sanitizer_report(output: str) -> SanitizerReport | None:
    """Returns the first report in a program's output.

    libFuzzer's messages about its limits come last: a report after which the program continued is
    more important.
    """
    reports = [_named(found[1], found[2], output[found.start() :])
               for found in islice(_REPORT.finditer(output), MAX_REPORTS)]  # fmt: skip
    first = next((one for one in reports if one.tool != DRIVER or one.kind == "signal"), None)
    if first is not None:
        return first
    if (found := _UNDEFINED.search(output)) is not None:
        file = found[1].rpartition("/")[2]
        rest = output[found.start() :]
        return SanitizerReport("UndefinedBehaviorSanitizer", found[2], "sanitizer", rest, file)
    return reports[0] if reports else None


def _named(tool: str, error: str, text: str) -> SanitizerReport:
    if _MEMORY.search(error):
        return SanitizerReport(tool, "out of memory", "memory", text)
    if "detected memory leaks" in error:
        leak = _LEAK.search(text)
        return SanitizerReport(tool, "leak", "leak", text if leak is None else text[leak.start() :])
    if error.startswith(_DEADLY):
        return SanitizerReport(tool, "deadly signal", "signal", text)
    words = _WORDS.match(error)
    name = error if words is None else words[0]
    return SanitizerReport(tool, name.removesuffix(" on"), "sanitizer", text)


def checker_of(kind: str, title: str) -> str:
    """Returns what a build must contain to report a failure with this title; "" if nothing."""
    if kind == "assertion":
        return ASSERTIONS if title.startswith("assertion `") else ""
    if kind not in {"sanitizer", "leak"}:
        return ""
    tool = title.partition(":")[0]
    return tool if tool in MARKS else "UndefinedBehaviorSanitizer"


def start_of_report(output: str) -> int | None:
    """Returns where the first report begins, if there is one."""
    found = _REPORT.search(output) or _UNDEFINED.search(output)
    return None if found is None else found.start()


def with_stacks(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns an environment in which UBSan prints stacks, unless the options say otherwise."""
    given = variables.get("UBSAN_OPTIONS", "")
    return {**variables, "UBSAN_OPTIONS": f"print_stacktrace=1:{given}".rstrip(":")}


def needs_address_space(output: str) -> bool:
    """Returns whether a sanitizer gave up because it may not map enough memory."""
    return _CANNOT_START.search(output) is not None

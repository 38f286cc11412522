"""Identifies a bug by the place and kind of the failure, without the parts that vary.

Line numbers, addresses, temporary names and values differ between two inputs, or two commits, that
show the same bug. The signature leaves them out, so that it stays the same while the code around
the bug changes.
"""

import hashlib
import re
import signal
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal, NamedTuple

from windlass_fuzz.config.finding_settings import FailureKind, SignatureSettings
from windlass_fuzz.engines.frames import clean_function, frames_in, on_all, own_functions
from windlass_fuzz.engines.input_words import InputWords, ProgramText
from windlass_fuzz.engines.sanitizers import (
    SanitizerReport,
    sanitizer_report,
    start_of_report,
)
from windlass_fuzz.processes.runner import ExitStatus, signal_name

KEY_LENGTH: Final = 16
TITLE_LENGTH: Final = 200
LINE_LENGTH: Final = 2_000  # longer lines are cut, since the patterns are slow on them
SHELL_SIGNALS: Final = 128  # a shell exits with this number plus the signal's
DEFAULT_RULES: Final = SignatureSettings()
NO_WORDS: Final = InputWords()

Source = Literal["report", "message", "stack", "output"]

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
_COMPLAINT: Final = re.compile(
    r"\b(?:error|fatal|fail(?:ed|ure)?|panic(?:ked)?|assert(?:ion)?|abort(?:ed)?|exception|"
    r"violat(?:ed|ion)|invalid|corrupt(?:ed|ion)?|internal)\b",
    re.IGNORECASE,
)
_VARYING: Final = (
    (re.compile(r"0x[0-9a-fA-F]+"), "*"),
    (re.compile(r"(?:/[\w.+-]+)+/"), ""),
    (re.compile(r"(?<![\w.)\]])-(?=\d)"), ""),
    (re.compile(r"\b[0-9a-fA-F]*\d[0-9a-fA-F]*\b"), "N"),
    (re.compile(r"\d+"), "N"),
    (re.compile(r"\bN(?:[\s,;]+N\b)+"), "N"),
)
QUOTES: Final = "'\"`"
_QUOTE: Final = re.compile(f"[{QUOTES}]")
MAX_QUOTES: Final = 200  # the last ones
MAX_QUOTE: Final = 500
SURELY: Final = 16  # characters that come from the input, wherever the quote ends
QUOTED_IN_CODE: Final = 3  # characters of an input that an assertion may quote
_SIGNALS_OF_HALTS: Final = (signal.SIGABRT, signal.SIGILL, signal.SIGTRAP)
# parts of titles that say what failed
_TELLING: Final = ("assertion `", "fatal failure `", "uncaught ")
_USAGE: Final = re.compile(r"^\s*usage: .*$", re.IGNORECASE | re.MULTILINE)
_BAD_ADDRESS: Final = re.compile(
    r"^SIG(?:SEGV|BUS)$|^(?:HW)?AddressSanitizer: (?!stack-overflow|FPE|ILL|ABRT|TRAP)|"
    r"out of bounds|null pointer|misaligned|insufficient space|pointer index"
)
HANG: Final = "does not end"
OUT_OF_MEMORY: Final = ("std::bad_alloc", "out of memory", "MemoryError", "Cannot allocate memory")


class Signature(NamedTuple):
    """The name of a failure: its kind, a title, the functions that it names, and their source.

    A failure with a `family` has no place: it is named by what its input contains (`frames`), and
    only once the input is fully minimised. Until then only its family is certain.
    """

    kind: FailureKind
    title: str
    frames: tuple[str, ...] = ()
    source: Source = "output"
    family: str = ""


def key_of(title: str) -> str:
    """Returns the key under which a bug is stored."""
    return hashlib.sha256(title.encode()).hexdigest()[:KEY_LENGTH]


def title_of(output: str, ended: ExitStatus) -> str:
    """Returns one line that is the same for all inputs that show the same bug."""
    return signature_of(output, ended).title


def signature_of(
    output: str,
    ended: ExitStatus,
    rules: SignatureSettings = DEFAULT_RULES,
    errors: str | None = None,
    data: bytes = b"",
    program: ProgramText | None = None,
) -> Signature:
    """Returns the signature of a failed run.

    `errors` is its error output alone, if known, and `data` the input, whose words are not used as
    names unless the `program` uses them in its messages.
    """
    output = _shortened(output)
    said = None if errors is None else _shortened(errors)
    words = InputWords(data.decode(errors="replace"), program)
    found = (
        _by_rules(output, ended, rules)
        or _sanitizer(said or "", ended, rules)
        or _sanitizer(output, ended, rules)
        or _stated(said or "", rules, words)
        or _stated(output, rules, words)
        or _plain(output, output if said is None else said, ended, rules, words)
    )
    return found._replace(title=found.title[:TITLE_LENGTH])


def hang_in(stacks: Iterable[Sequence[str]], count: int, known: Signature | None) -> Signature:
    """Returns the name of a hang during which these stacks were seen.

    If all of them are within the place of the `known` hang, it is that one.
    """
    stack = on_all(stacks)
    place = (stack_of_title(known.title) if known else [])[:1]
    frames = stack[stack.index(place[0]) if set(place) & set(stack) else 0 :][:count]
    title = f"{HANG} in {' < '.join(frames)}" if frames else HANG
    return Signature("hang", title[:TITLE_LENGTH], frames, "stack" if frames else "output")


def start_of_failure(output: str) -> int:
    """Returns where the line about the failure begins; 0 if there is none."""
    starts = [start_of_report(output)]
    for pattern in (_ASSERTION, _VIOLATION, _FATAL, _THROWN):
        found = pattern.search(output)
        starts.append(None if found is None else found.start())
    first = min((one for one in starts if one is not None), default=0)
    return output.rfind("\n", 0, first) + 1


def with_stack(found: Signature, frames: tuple[str, ...]) -> Signature:
    """Replaces a name from the output by one from the stack where a signal ended the program."""
    if not frames or found.source != "output":
        return found
    how = found.title if found.title.startswith("uncaught ") else found.title.partition(":")[0]
    title = f"{how} in {' < '.join(frames)}"[:TITLE_LENGTH]
    return Signature(found.kind, title, frames, "stack")


def may_be_same(one: Signature, names: Collection[str], frames: Collection[str]) -> bool:
    """Returns whether a failure may be the bug with these names; see also `is_surely_same`.

    They share a function, or the text of an assertion or exception. If one of them has no place,
    the same way of failing is enough: only a clear difference proves that it is another bug.
    """
    if one.title in names or set(one.frames) & set(frames):
        return True
    how, place = _how_and_where(one.title)
    for name in names:
        other, there = _how_and_where(name)
        if not place or not there:
            if other.partition(":")[0] == how.partition(":")[0]:
                return True
        elif place == there or (how == other and how.startswith(_TELLING)):
            return True
    return False


def is_close(title: str, other: str) -> bool:
    """Returns whether two failures are in the same function, and fail the same way or both with
    memory errors.

    A bad address causes different errors depending on where it points; callers of the function may
    differ. A hang may be seen in what its loop calls.
    """
    (how, place), (way, there) = _how_and_where(title), _how_and_where(other)
    if how == way == HANG:
        return place in stack_of_title(other) or there in stack_of_title(title)
    if not place or place != there:
        return False
    return how == way or all(_BAD_ADDRESS.search(one) is not None for one in (how, way))


def is_surely_same(one: Signature, names: Collection[str]) -> bool:
    """Returns whether a failure is the bug with these names, in another build.

    They fail in the same function, or with the same assertion or exception. Sharing outer functions
    is not enough: all failures of a solver share its main loop.
    """
    how, place = _how_and_where(one.title)
    others = [_how_and_where(name) for name in names]
    return one.title in names or any(
        bool(place) and (place == there or (how == other and how.startswith(_TELLING)))
        for other, there in others
    )


def innermost(title: str) -> str:
    """Returns the innermost function that a title names, without its classes; "" if there is none.

    A function without a plain name, such as a lambda, counts as none.
    """
    name = _how_and_where(title)[1].rpartition(" ")[2].rpartition("::")[2]
    return name if name.isidentifier() else ""


def places_of(titles: Iterable[str]) -> set[str]:
    """Returns the innermost functions that these titles name."""
    return {stack[0] for title in titles if (stack := stack_of_title(title))}


def stack_of_title(title: str) -> list[str]:
    """Returns the functions that a title names, innermost first."""
    _, said, stack = title.rpartition(" in ")
    return stack.split(" < ") if said else []


def claim_of(one: Signature) -> str:
    """Returns a name that failures share if they may be one bug: only one of them is triaged at a
    time.
    """
    return key_of(one.family or _how_and_where(one.title)[1] or one.title)


def _how_and_where(title: str) -> tuple[str, str]:
    """Splits a title into how it failed and the innermost place, "" if it names none."""
    how, said, stack = title.rpartition(" in ")
    return (how, stack.partition(" < ")[0]) if said else (title, "")


def crashed(ended: ExitStatus) -> bool:
    """Returns whether a signal ended the program, directly or reported by a shell."""
    return signal_of(ended.code) is not None


def signal_of(code: int) -> int | None:
    """Returns the signal that an exit code stands for, if any."""
    if code < 0:
        return -code
    return code - SHELL_SIGNALS if SHELL_SIGNALS < code < SHELL_SIGNALS + 32 else None


def says_out_of_memory(output: str, data: bytes) -> bool:
    """Returns whether a program reports that it ran out of memory, and does not just repeat its
    input.
    """
    return any(word in output and word.encode() not in data for word in OUT_OF_MEMORY)


def prints_usage(output: str, data: bytes) -> bool:
    """Returns whether a program prints its usage instead of running the input."""
    found = _USAGE.search(output)
    return found is not None and found[0].strip().encode() not in data


def normalise(text: str, rules: SignatureSettings = DEFAULT_RULES) -> str:
    """Removes addresses, folders and numbers from a line, and whatever the rules call variable."""
    for pattern in rules.blank:
        text = re.sub(pattern, "*", text)
    for varying, instead in _VARYING:
        text = varying.sub(instead, text)
    return " ".join(text.split())


def without_quotes(said: str, text: str, least: int = 1) -> str:
    """Replaces quoted input in a text by `*`; quotes of other text stay.

    An input may itself contain quotes and line breaks.
    """
    starts = [found.start() for found in _QUOTE.finditer(said)][-MAX_QUOTES:] if text else []
    kept, place = [], 0
    for start in starts:
        if start < place:
            continue
        length, end = _quote_at(said, start, text)
        if length >= least:
            kept.append(f"{said[place : start + 1]}*{said[start]}")
            place = end
    return "".join([*kept, said[place:]])


def _quote_at(said: str, start: int, text: str) -> tuple[int, int]:
    """Returns how many characters of an input are quoted here, and where the quote ends; 0 if
    none.
    """
    rest = said[start + 1 : start + 1 + MAX_QUOTE]
    low, high = 0, len(rest)  # the quote contains it, too
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if rest[:middle] in text else (low, middle - 1)
    closing = "'" if said[start] == "`" and "'" in rest[: low + 1] else said[start]
    if (end := rest.rfind(closing, 0, low + 1)) > 0:
        return end, start + end + 2
    if rest[:1] == said[start]:
        return MAX_QUOTE, start + 2  # the rest of the input is empty there
    whole = low == len(rest) or rest[low] in QUOTES or low >= SURELY
    return (low if whole else 0), start + 1 + low


def _shortened(output: str) -> str:
    return "\n".join(line[:LINE_LENGTH] for line in output.split("\n"))


def _by_rules(output: str, ended: ExitStatus, rules: SignatureSettings) -> Signature | None:
    """Applies the solver's own patterns: their first group, or the whole match, is the title."""
    for pattern in rules.messages:
        if (found := re.search(pattern, output, re.MULTILINE)) is not None:
            text = found[1] if found.lastindex else found[0]
            kind: FailureKind = "crash" if crashed(ended) else "wrong_answer"
            return Signature(kind, normalise(text, rules), source="message")
    return None


def _sanitizer(output: str, ended: ExitStatus, rules: SignatureSettings) -> Signature | None:
    report = sanitizer_report(output)
    if report is None or report.kind == "memory" or _went_on(report, ended):
        return None
    full = None if report.kind == "signal" else "stack-overflow" in report.error
    own = own_functions(frames_in(report.text), rules, overflow=full)
    kind: FailureKind = "leak" if report.kind == "leak" else "sanitizer"
    name = f"{report.tool}: {report.error}"
    if report.file:
        name = f"{report.file}: {normalise(report.error, rules)}"
    elif report.kind == "signal":
        kind, name = _deadly(report, output)
    title = f"{name} in {' < '.join(own)}" if own else name
    return Signature(kind, title, own, "report")


def _went_on(report: SanitizerReport, ended: ExitStatus) -> bool:
    """Returns whether something else ended the program after it continued from this report."""
    if not report.file or ended.reason != "exited":
        return False
    number = signal_of(ended.code)
    said = _assertion(report.text) or _thrown(report.text)
    return number is not None and (said is not None or number not in _SIGNALS_OF_HALTS)


def _deadly(report: SanitizerReport, output: str) -> tuple[FailureKind, str]:
    """Names what libFuzzer calls a deadly signal: an assertion or an exception is more precise."""
    said = _assertion(output) or _thrown(output)
    if said is None:
        return "crash", f"{report.tool}: deadly signal"
    return said.kind, f"{report.tool}: {said.title}"


def _stated(output: str, rules: SignatureSettings, words: InputWords) -> Signature | None:
    """Returns the text of an assertion or exception."""
    return _assertion(without_quotes(output, words.text, QUOTED_IN_CODE), rules, words) or _thrown(
        without_quotes(output, words.text), rules, words
    )


def _assertion(
    output: str, rules: SignatureSettings = DEFAULT_RULES, words: InputWords = NO_WORDS
) -> Signature | None:
    where = ""
    function = ""
    if (found := _ASSERTION.search(output)) is not None:
        function = clean_function(found[2])
        how, what, where = "assertion", found[3], f"{_file(found[1])} {function}".strip()
    elif (found := _VIOLATION.search(output)) is not None:
        how, what, where = "assertion", found[2], _file(found[1])
    elif (found := _FATAL.search(output)) is not None:
        function = clean_function(found[1])
        how, what, where = "fatal failure", found[3], f"{_file(found[2])} {function}"
    if not where:
        return None
    what = normalise(words.blank(what.strip()), rules)
    frames = (function,) if function else ()
    return Signature("assertion", f"{how} `{what}` in {where}", frames, "message")


def _thrown(
    output: str, rules: SignatureSettings = DEFAULT_RULES, words: InputWords = NO_WORDS
) -> Signature | None:
    """Names an uncaught exception; only a stack tells where it was thrown."""
    found = _THROWN.search(output)
    if found is None:
        return None
    what = f": {normalise(words.blank(found[2]), rules)}" if found[2] else ""
    return Signature("crash", f"uncaught {found[1]}{what}")


def _plain(
    output: str, errors: str, ended: ExitStatus, rules: SignatureSettings, words: InputWords
) -> Signature:
    """Falls back to the exit status and a line of output, preferably an error message.

    What a program prints before a signal ends it is mostly progress, which varies; so then only its
    error output counts.
    """
    number = signal_of(ended.code)
    how = f"exit code {ended.code}" if number is None else signal_name(number)
    lines = _lines(without_quotes(errors, words.text))
    if not lines and number is None:
        lines = _lines(without_quotes(output, words.text))
    complaints = [line for line in lines if _COMPLAINT.search(line)]
    kind: FailureKind = "wrong_answer" if number is None else "crash"
    if not lines:
        return Signature(kind, how)
    line = words.blank((complaints or lines)[-1])
    return Signature(kind, f"{how}: {normalise(line, rules)}")


def _lines(output: str) -> list[str]:
    return [line for line in output.split("\n") if line.strip()]


def _file(path: str) -> str:
    return path.rpartition("/")[2]

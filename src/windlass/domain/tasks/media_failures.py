"""Classifies failures by the messages of ffmpeg and GStreamer."""

import re
from typing import Final, NamedTuple

from windlass.domain.lifecycle.failures import FailureClass

MESSAGE_LIMIT: Final = 500


class Verdict(NamedTuple):
    """A failure's class, and the line that shows it."""

    failure: FailureClass
    message: str | None


# The first match counts: a full disk also ends in "Conversion failed", a lost connection also in
# "Input/output error". Without a match, the work itself failed.
_PATTERNS: Final = (
    (
        FailureClass.RESOURCE,
        (
            r"no space left on device|cannot allocate memory|out of memory|disk quota exceeded"
            r"|too many open files|no capable devices found"
        ),
    ),
    (
        FailureClass.NETWORK,
        (
            r"connection refused|connection reset|connection timed out|connection closed"
            r"|connection terminated"
            r"|network is unreachable|network is down|no route to host|host is down"
            r"|failed to resolve hostname|temporary failure|name or service not known"
            r"|could not resolve|error resolving|no such host|socket connection error"
            r"|operation timed out|timed out|broken pipe|could not connect|failed to connect"
            r"|cannot connect|server returned 5|http error 5|http error 429|too many requests"
            r"|service unavailable|bad gateway|gateway timeout"
            r"|error in the pull function|i/o error on socket"
            r"|(?:tcp|udp|rtmp|rtsp|srt|http|https)://\S*: input/output error"
        ),
    ),
    (
        FailureClass.CONFIGURATION,
        (
            r"unknown encoder|unknown decoder|encoder not found|decoder not found"
            r"|unrecognized option|option not found|error splitting the argument list"
            r"|error parsing option|unable to (?:parse|choose)|no such filter|filter not found"
            r"|unknown (?:input|output) format|requested output format|muxer not found"
            r"|protocol not found|undefined constant|matches no streams|trailing option"
            r"|at least one output file|invalid encoder type|missing argument"
            r"|no element \"|no property \"|could not link|syntax error|could not set property"
            r"|erroneous pipeline|could not be constructed|empty pipeline"
        ),
    ),
)
_TABLE: Final = tuple(
    (failure, re.compile(pattern, re.IGNORECASE)) for failure, pattern in _PATTERNS
)
# ffmpeg reports only the end of the file if a server closes the connection without an answer.
_CUT_OFF: Final = re.compile(
    r"^error opening input file ([a-z]+://\S+?)\.?\s*\nerror opening input files: end of file",
    re.IGNORECASE | re.MULTILINE,
)
_TAG: Final = re.compile(r"^\[[^\]]* @ 0x[0-9a-f]+\]\s*")
_DEBUG: Final = re.compile(
    r"^\d+:\d\d:\d\d\.\d+\s+\d+\s+0x[0-9a-f]+\s+\w+\s+\S+\s+\S+?:\d+:[^:]*:\s*"
)
_OBJECT: Final = re.compile(r"^<[^>]*>\s*")


def judge(text: str) -> Verdict:
    """Returns the class of a failure, from what the tool wrote."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for failure, pattern in _TABLE:
        for line in lines:
            if pattern.search(line):
                return Verdict(failure, _plain(line))
    cut_off = _CUT_OFF.search(text)
    if cut_off is not None:
        return Verdict(FailureClass.NETWORK, _plain(f"{cut_off[1]}: End of file"))
    return Verdict(FailureClass.EXECUTION, _telling(lines))


def _telling(lines: list[str]) -> str | None:
    """Returns the line that best explains the failure: GStreamer's first, ffmpeg's last."""
    for line in lines:
        if re.search(r"> error: ", line):
            return _plain(line)
    for line in reversed(lines):
        if re.search(r"\berror\b|\bfailed\b|invalid", line, re.IGNORECASE):
            return _plain(line)
    return None


def _plain(line: str) -> str:
    """Returns a line without memory addresses and times."""
    line = _OBJECT.sub("", _DEBUG.sub("", _TAG.sub("", line)))
    return line[:MESSAGE_LIMIT]

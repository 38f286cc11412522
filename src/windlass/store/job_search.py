"""Searches the texts of jobs for words and regular expressions."""

from typing import Final, NamedTuple

import msgspec

from windlass.domain.rows.views import JobFilter
from windlass.domain.values.patterns import compile_pattern

LONGEST: Final = 10_000  # characters of a text that are searched


class JobText(NamedTuple):
    """What filters by time, failure and text look at."""

    job: int
    created_at: int
    finished_at: int | None
    failure: int
    message: str | None
    reason: str | None
    spec: bytes


class _Searched(msgspec.Struct):
    """The fields of a stored spec that are searched."""

    task: str = ""
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"null")


class _Command(msgspec.Struct):
    argv: list[str] = []
    function: str = ""


_decode = msgspec.json.Decoder(_Searched).decode
_command = msgspec.json.Decoder(_Command).decode


def searches(wanted: JobFilter) -> bool:
    """Returns whether the filter looks for a text."""
    return wanted.text is not None or wanted.pattern is not None


def found_in(wanted: JobFilter, row: JobText) -> bool:
    """Returns whether a job has the text and the pattern of a filter."""
    spec = _decode(row.spec)
    found = (spec.name, spec.task, _command_of(spec), row.message, row.reason)
    texts = [text[:LONGEST] for text in found if text]
    if wanted.text is not None:
        sought = wanted.text.casefold()
        starts = str(row.job).startswith(sought)
        if not starts and not any(sought in text.casefold() for text in texts):
            return False
    # One search of all is several times faster than one of each.
    return wanted.pattern is None or compile_pattern(wanted.pattern)("\n".join(texts))


def _command_of(spec: _Searched) -> str:
    """Returns a program with its arguments, a function's name, or what other tasks were given."""
    try:
        command = _command(spec.args)
    except msgspec.DecodeError:
        command = _Command()
    if command.argv:
        return " ".join(command.argv)
    return command.function or bytes(spec.args)[: 4 * LONGEST].decode(errors="ignore")

"""Searches the texts of jobs for words and regular expressions."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from windlass.domain.rows.views import JobFilter
from windlass.domain.values.names import compile_pattern, looks_at_lines

MAX_CHARACTERS: Final = 10_000  # characters of a text that are searched
TOGETHER: Final = 50  # jobs that are searched at once for a pattern


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


def found_in(wanted: JobFilter, rows: Iterable[JobText]) -> list[int]:
    """Returns those of some jobs that have the text and the pattern of a filter."""
    texts = [(row.job, _text_of(row)) for row in rows]
    if wanted.text is not None:
        sought = wanted.text.casefold()
        texts = [
            (job, text)
            for job, text in texts
            if sought in text.casefold() or str(job).startswith(sought)
        ]
    if wanted.pattern is None:
        return [job for job, _ in texts]
    find = compile_pattern(wanted.pattern)
    if not looks_at_lines(wanted.pattern):
        return [job for job, text in texts if find(text)]
    found: list[int] = []
    # One search of many texts takes little longer than one search of one.
    for start in range(0, len(texts), TOGETHER):
        some = texts[start : start + TOGETHER]
        if find("\n".join(text for _, text in some)):
            found += [job for job, text in some if find(text)]
    return found


def _text_of(row: JobText) -> str:
    """Returns what is searched of a job, one text a line."""
    spec = _decode(row.spec)
    parts = (spec.name, spec.task, _command_of(spec), row.message, row.reason)
    return "\n".join([part[:MAX_CHARACTERS] for part in parts if part])


def _command_of(spec: _Searched) -> str:
    """Returns a program with its arguments, a function's name, or what other tasks were given."""
    try:
        command = _command(spec.args)
    except msgspec.DecodeError:
        command = _Command()
    if command.argv:
        return " ".join(command.argv)
    return command.function or bytes(spec.args)[: 4 * MAX_CHARACTERS].decode(errors="ignore")

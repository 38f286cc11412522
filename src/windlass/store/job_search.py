"""Searches the texts of jobs for words and regular expressions."""

from collections.abc import Iterator
from typing import Final

import msgspec

from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobFilter
from windlass.domain.values.patterns import compile_pattern

LONGEST: Final = 10_000  # characters of a text that are searched


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


def found_in(wanted: JobFilter, record: JobRecord) -> bool:
    """Returns whether a job has the text and the pattern of a filter."""
    texts = list(_texts(record))
    if wanted.text is not None:
        sought = wanted.text.casefold()
        starts = str(record.facts.id).startswith(sought)
        if not starts and not any(sought in text.casefold() for text in texts):
            return False
    return wanted.pattern is None or any(map(compile_pattern(wanted.pattern), texts))


def _texts(record: JobRecord) -> Iterator[str]:
    spec = _decode(record.spec)
    found = spec.name, spec.task, _command_of(spec), record.message, record.reason
    return (text[:LONGEST] for text in found if text)


def _command_of(spec: _Searched) -> str:
    """Returns a program with its arguments, a function's name, or what other tasks were given."""
    try:
        command = _command(spec.args)
    except msgspec.DecodeError:
        command = _Command()
    told = " ".join(command.argv) or command.function
    return told or bytes(spec.args)[: 4 * LONGEST].decode(errors="ignore")

"""What commands about workflow files share: parameters, and errors with the line of a job."""

import re
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from windlass.domain.values.errors import InvalidInput
from windlass.workflows.expansion import Expansion
from windlass.workflows.files import STANDARD_INPUT
from windlass.workflows.nodes import Misdescribed


def _no_option(_: object, path: Path) -> None:
    if str(path).startswith("-") and str(path) != STANDARD_INPUT:
        raise ValueError(f"Unknown option: {path}.")


# Of all that begins with a hyphen only a single one is meant: standard input.
File = Annotated[Path, Parameter(allow_leading_hyphen=True, validator=_no_option)]
Params = Annotated[
    list[str] | None,
    Parameter(
        name="--param",
        consume_multiple=False,
        allow_leading_hyphen=True,
        help="A parameter, name=value. May be given several times.",
    ),
]

_OF_JOB = re.compile(r"jobs\[(\d+)\]\.?(.*)")


def parameters_of(texts: list[str] | None) -> dict[str, str]:
    """Parameters as they are given to commands."""
    given: dict[str, str] = {}
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise InvalidInput("param", "name=value", text)
        given[name] = value
    return given


def in_words_of_file(error: InvalidInput, made: Expansion) -> InvalidInput:
    """The server's error with the line of the job that it is about."""
    about = _OF_JOB.fullmatch(error.field)
    if about is None or int(about[1]) >= len(made.jobs):
        return error
    number, field = int(about[1]), about[2]
    name = f"jobs.{made.jobs[number].name}" + (f".{field}" if field else "")
    return Misdescribed(made.place_of(number, field), name, error.expected, error.got)

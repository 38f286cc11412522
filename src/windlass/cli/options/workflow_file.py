"""The options of commands that read workflow files, and errors that name the line of a job."""

import re
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from windlass.domain.values.errors import InvalidInput
from windlass.workflows.expansion import Expansion
from windlass.workflows.files import STANDARD_INPUT
from windlass.workflows.jobs import locate
from windlass.workflows.nodes import Misdescribed


def _no_option(_: object, path: Path) -> None:
    if str(path).startswith("-") and str(path) != STANDARD_INPUT:
        raise ValueError(f"Unknown option: {path}.")


# Only a single hyphen, for standard input, is a file; other words with one are options.
File = Annotated[Path, Parameter(allow_leading_hyphen=True, validator=_no_option)]
Params = Annotated[
    list[str] | None,
    Parameter(
        name="--param",
        consume_multiple=False,
        allow_leading_hyphen=True,
        help="A parameter, name=value. Repeatable.",
    ),
]

_OF_JOB = re.compile(r"jobs\[(\d+)\]\.?(.*)")


def parameters_of(texts: list[str] | None) -> dict[str, str]:
    """Returns the parameters given as name=value."""
    given: dict[str, str] = {}
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise InvalidInput("param", "name=value", text)
        given[name] = value
    return given


def locate_error(error: InvalidInput, made: Expansion) -> InvalidInput:
    """Returns the server's error with the file and line of what it is about."""
    if error.field.startswith("workflow."):
        return locate(error, made.tree)
    about = _OF_JOB.fullmatch(error.field)
    if about is None or int(about[1]) >= len(made.jobs):
        return error
    number, field = int(about[1]), about[2]
    name = f"jobs.{made.jobs[number].name}" + (f".{field}" if field else "")
    place = made.place_of(number, field)
    return Misdescribed(place, name, error.expected, error.got, error.hint)

"""What a task knows about its jobs before they run, and the checks that tasks share."""

from pathlib import PurePosixPath
from typing import Final, NamedTuple, Protocol

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms


def about(text: str) -> msgspec.Meta:
    """Describes an argument to people who fill in the form of its task."""
    return msgspec.Meta(description=text)


class TaskPlan(NamedTuple):
    """A job's checked arguments, and what follows from them."""

    args: object
    requires: tuple[str, ...] = ()  # clauses that the worker must meet, as in `requires`
    duration_ms: int | None = None  # of the media, if known; timeouts depend on it
    function: str | None = None  # a Python function that the worker must be able to import


class TaskKind(Protocol):
    """One kind of work. No I/O: a server calls it for every job that names it."""

    @property
    def name(self) -> str: ...

    def check(self, args: object, field: str) -> TaskPlan:
        """Checks the arguments; raises `InvalidInput` for a wrong one, named below `field`."""


TEXT_LIMIT: Final = 4_096
LIST_LIMIT: Final = 1_000


def check_text(value: str, field: str, limit: int = TEXT_LIMIT) -> None:
    """Raises `InvalidInput` for text that cannot be an argument of a program."""
    if "\0" in value:
        raise InvalidInput(field, "text without NUL characters", "a NUL character")
    if len(value) > limit:
        raise InvalidInput(field, f"at most {limit} characters", f"{len(value)} characters")


def check_texts(values: list[str], field: str) -> None:
    """Checks each text of a list."""
    if len(values) > LIST_LIMIT:
        raise InvalidInput(field, f"at most {LIST_LIMIT} items", len(values))
    for number, value in enumerate(values):
        check_text(value, f"{field}[{number}]")


def check_scratch_path(value: str, field: str) -> None:
    """Raises `InvalidInput` unless this is a path below the job's own folder."""
    check_text(value, field)
    path = PurePosixPath(value)
    if (
        not value
        or value.startswith("-")
        or path.is_absolute()
        or ".." in path.parts
        or not path.name
        or not value.isprintable()
        or "\\" in value
    ):
        raise InvalidInput(field, "a relative path below the job's own folder", value)


def read_duration(value: float | str | None, field: str) -> int | None:
    """Returns a duration of media in milliseconds, greater than 0."""
    if value is None:
        return None
    duration_ms = parse_duration_ms(value, field)
    if duration_ms <= 0:
        raise InvalidInput(field, "longer than 0", value)
    return duration_ms

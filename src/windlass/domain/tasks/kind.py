"""What a task knows about its jobs before they run."""

from typing import NamedTuple, Protocol

import msgspec


def about(text: str) -> msgspec.Meta:
    """Explains an argument to people who fill in the form of its task."""
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
        """Checks the arguments; raises `InvalidInput` for the wrong one, named below `field`."""
        ...

"""What a task says about its jobs before they run."""

from typing import NamedTuple, Protocol


class TaskPlan(NamedTuple):
    """A job's arguments, checked, and what follows from them."""

    args: object
    requires: tuple[str, ...] = ()  # clauses the worker must meet, as `requires` has them
    duration_ms: int | None = None  # of the media, where known: timeouts depend on it


class TaskKind(Protocol):
    """One kind of work. No I/O: a server calls it for every job that names it."""

    @property
    def name(self) -> str: ...

    def check(self, args: object, field: str) -> TaskPlan:
        """Checks the arguments; raises `InvalidInput` that names the misfit below `field`."""
        ...

"""Handles of jobs: as arguments they stand for results, and they stay in their process."""

import itertools
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Self, TypeVar, cast

R_co = TypeVar("R_co", covariant=True)

# how many were used as results so far: most values contain none
REFERRED: Final = itertools.count()


def reference_of(value: Any) -> int | str | None:
    """Returns the job that a handle stands for, by id or name; None for other values."""
    refer = getattr(type(value), "__windlass_reference__", None)
    found: int | str | None = None if refer is None else refer(value)
    return found


# Names in Celery, RQ, Dramatiq, Huey and Prefect for attributes of our job handles.
ELSEWHERE: Final = {
    "abort": "cancel()",
    "fetch_result": "result()",
    "forget": "delete()",
    "get": "result(timeout=…)",
    "get_result": "result(timeout=…)",
    "get_status": "info().state",
    "is_failed": 'info().state == "failed"',
    "is_finished": 'info().state == "completed"',
    "ready": "info().state",
    "refresh": "info()",
    "return_value": "result()",
    "revoke": "cancel()",
    "state": "info().state",
    "status": "info().state",
    "successful": 'info().state == "completed"',
    "wait_for": "wait(timeout=…)",
}


class Kept:
    """A client or a handle: copied as itself, even inside dataclasses, and not pickled."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: Any) -> Self:
        return self

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError(f"cannot pickle {self!r}: {self.instead()}")

    def instead(self) -> str:
        """Returns what to pickle in its place."""
        return "keep its id, and make a handle of it there: client.job(id) or client.workflow(id)"


class OfOneJob(Kept, Generic[R_co]):
    """What the handles of one job have in common, for blocking and for async code."""

    @property
    def output(self) -> R_co:
        """This handle, typed as its result: `add.submit(first.output, 2)` suits type checkers.

        Among the arguments of another job, a handle stands for the result of its job.
        """
        return cast("R_co", self)

    if not TYPE_CHECKING:  # Type checkers know the attributes that there are.

        def __getattr__(self, name: str) -> NoReturn:
            ours = ELSEWHERE.get(name)
            hint = "" if ours is None else f"; use `job.{ours}`"
            raise AttributeError(f"the handle of a job has no {name}{hint}", name=name, obj=self)

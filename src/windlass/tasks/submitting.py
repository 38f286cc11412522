"""Submits the calls of a task: with the default client, or as child jobs inside a job.

The client is above this package, so it registers how to get it. Errors about a single job name the
task instead of a position in a list.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, ParamSpec, Protocol, TypeVar, cast

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict, InvalidInput, WindlassError
from windlass.domain.values.quantities import DurationLike

if TYPE_CHECKING:
    from windlass.client.blocking.handles import JobHandle
    from windlass.client.handles import AsyncJob
    from windlass.transactions.submitting import TransactionJob


FIRST: Final = "jobs[0]"  # how servers name a job in the list of a request
ALONE: Final = "the job"


@contextmanager
def about_one(job: JobSpec) -> Iterator[None]:
    """Says `args.argv of shell` in errors, where the server says `jobs[0].args.argv`."""
    try:
        yield
    except InvalidInput as error:
        if error.field.startswith(FIRST):
            error.field = _without_place(error.field)
            error.of = "" if error.field == ALONE else _name_of(job)
        raise
    except WindlassError as error:
        parts = (_without_place(part) if isinstance(part, str) else part for part in error.args)
        error.args = tuple(parts)
        raise


def _without_place(text: str) -> str:
    return text.replace(f"{FIRST}.", "", 1).replace(FIRST, ALONE, 1)


def _name_of(job: JobSpec) -> str:
    """Returns the name of its function, else of its task."""
    path = job.args.get("function") if isinstance(job.args, dict) else None
    return path.partition(":")[2] if job.task == "python" and isinstance(path, str) else job.task


P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


# Names in Celery, RQ, Dramatiq, Huey and Prefect for our methods.
ELSEWHERE: Final = {
    "apply_async": "options(…).submit(…)",
    "delay": "submit(…)",
    "enqueue": "submit(…)",
    "kiq": "submit(…)",
    "schedule": "options(delay=…).submit(…)",
    "send": "submit(…)",
    "send_with_options": "options(…).submit(…)",
    "starmap": "map(…)",
    "with_options": "options(…)",
}


class Submitter(Protocol):
    """A client, as far as it is needed here."""

    def submit_many(self, jobs: Sequence[JobSpec], /) -> list[Any]: ...

    def as_async(self) -> Any: ...


class _Registered:
    """How this program gets its default client."""

    find: Callable[[], Submitter] | None = None
    failure: Callable[[Any], Exception] | None = None


def register_default(find: Callable[[], Submitter], failure: Callable[[Any], Exception]) -> None:
    """Sets the function that finds the default client, and the error for a failed job."""
    _Registered.find, _Registered.failure = find, failure


def failure_of(job: Any) -> Exception:
    """Returns the error for a job (as clients show it) that ended without a result."""
    if _Registered.failure is None:
        raise Conflict("no_default_client", "import windlass: it defines the error")
    return _Registered.failure(job)


def _default_client() -> Submitter:
    if _Registered.find is None:
        raise Conflict("no_default_client", "import windlass: it has the default client")
    return _Registered.find()


def _submit(jobs: Sequence[JobSpec]) -> list[Any]:
    """Submits as children of the job that this code runs in, else with the default client."""
    from windlass.tasks.current import find_current  # imported here, since it imports tasks

    job = find_current()
    if job is None:
        return _default_client().submit_many(jobs)
    return [ChildJob(number) for number in job.submit_many(jobs)]


async def _submit_async(jobs: Sequence[JobSpec]) -> list[Any]:
    """Does the same in async code."""
    from windlass.tasks.current import find_current

    job = find_current()
    if job is None:
        made: list[Any] = await _default_client().as_async().submit_many(jobs)
        return made
    return [AsyncChildJob(number) for number in await job.submit_many_async(jobs)]


class ChildJob:
    """A job that another one has added to its workflow, seen from inside that one.

    It has an id, and can be waited for with `after`, or by the function that submitted it in a
    step: the attempt ends, so that it holds no slot which the child may need.
    """

    def __init__(self, number: int, recorded: bool = False) -> None:
        self._number = number
        self._recorded = recorded  # in a step, which finds it again in the next attempt

    def result(self, timeout: DurationLike | None = None) -> Any:
        """Returns its result once it has ended; raises `JobFailed` if it did not complete."""
        from windlass.tasks.steps import join  # imported here, since it imports this class

        (value,) = join([self], timeout)
        return value

    def check_recorded(self) -> None:
        """Raises `Conflict` if the next attempt would submit it again, and wait for that one."""
        if not self._recorded:
            raise Conflict(
                "not_in_a_step",
                f"job {self.id} was submitted outside of a step, so the next attempt would submit "
                'it again: job = windlass.step("child", add.submit, 1, 2), then job.result()',
            )

    @property
    def id(self) -> int:
        """Returns the job's number."""
        return self._number

    @property
    def output(self) -> Any:
        """Returns this handle, as an argument of another job: it stands for the result."""
        return self

    def __windlass_reference__(self) -> int:
        """Returns the reference to its result for the arguments of other jobs."""
        return self._number

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise Conflict(
            "inside_job",
            f"job {self.id} was submitted inside a job, which cannot ask for its {name}: submit a "
            "job that runs `after` it, or ask with a client outside",
        )

    def __eq__(self, other: object) -> bool:
        return self._number == other.id if isinstance(other, ChildJob) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._number)

    def __repr__(self) -> str:
        return f"<job {self.id}>"


class AsyncChildJob(ChildJob):
    """The same in async functions."""

    async def result(self, timeout: DurationLike | None = None) -> Any:
        """Returns its result once it has ended; raises `JobFailed` if it did not complete."""
        from windlass.tasks.steps import join_async

        (value,) = await join_async([self], timeout)
        return value


class Submits(Generic[P, R_co]):
    """What can be called as a job."""

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> JobSpec:
        """Returns the job of a call, without submitting it."""
        raise NotImplementedError

    def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> "JobHandle[R_co]":
        """Submits a call with the default client; inside a job, as a child of that job."""
        job = self.job(*args, **kwargs)
        with about_one(job):
            (made,) = _submit([job])
        return cast("JobHandle[R_co]", made)

    async def submit_async(self, /, *args: P.args, **kwargs: P.kwargs) -> "AsyncJob[R_co]":
        """Does the same in async code, in any event loop."""
        job = self.job(*args, **kwargs)
        with about_one(job):
            (made,) = await _submit_async([job])
        return cast("AsyncJob[R_co]", made)

    def map(self, *arguments: Iterable[Any]) -> "list[JobHandle[R_co]]":
        """Submits a call for each set of arguments: `add.map([1, 2], [3, 4])`; all or none.

        The lists have equal lengths: the first call gets the first value of each.
        """
        jobs = jobs_of(self, arguments)
        return _submit(jobs) if jobs else []

    async def map_async(self, *arguments: Iterable[Any]) -> "list[AsyncJob[R_co]]":
        """Does the same in async code, in any event loop."""
        jobs = jobs_of(self, arguments)
        return await _submit_async(jobs) if jobs else []

    def submit_in(self, connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> "TransactionJob":
        """Submits a call in the transaction of a connection; see `windlass.submit_in`."""
        from windlass.transactions.submitting import submit_in

        return submit_in(connection, self.job(*args, **kwargs))

    if not TYPE_CHECKING:  # Type checkers know the existing attributes.

        def __getattr__(self, name: str) -> NoReturn:
            ours = ELSEWHERE.get(name)
            hint = "" if ours is None else f"; use `{ours}`"
            raise AttributeError(f"a task has no {name}{hint}", name=name, obj=self)

    async def submit_in_async(
        self, connection: Any, /, *args: P.args, **kwargs: P.kwargs
    ) -> "TransactionJob":
        """Does the same over an async connection; see `windlass.submit_in_async`."""
        from windlass.transactions.submitting import submit_in_async

        return await submit_in_async(connection, self.job(*args, **kwargs))


def jobs_of(task: Submits[..., Any], arguments: Sequence[Iterable[Any]]) -> list[JobSpec]:
    """Returns a job for each set of arguments."""
    if not arguments:
        raise InvalidInput("map", "given a list for each argument", "none")
    for values in arguments:
        if not isinstance(values, Iterable):
            raise InvalidInput("map", "given a list for each argument", values)
    lists = [list(values) for values in arguments]
    lengths = sorted({len(values) for values in lists})
    if len(lengths) > 1:
        raise InvalidInput("map", "given lists of equal length", " and ".join(map(str, lengths)))
    jobs: list[JobSpec] = []
    for number, values in enumerate(zip(*lists, strict=True)):
        try:
            jobs.append(task.job(*values))
        except InvalidInput as error:
            field = f"map[{number}].{error.field}"
            refusal = InvalidInput(field, error.expected, error.got, error.hint)
            refusal.of = error.of
            raise refusal from None
    if len(jobs) > 1 and jobs[0].key is not None:
        raise InvalidInput("key", "unset for map: a key belongs to one job", jobs[0].key)
    return jobs


def with_ids(job: JobSpec) -> JobSpec:
    """Returns the job with ids instead of handles in its dependencies."""
    if not job.after and not job.after_any:
        return job
    after, after_any = map(_ids, (job.after, job.after_any))
    return msgspec.structs.replace(job, after=after, after_any=after_any)


def _ids(references: tuple[Any, ...]) -> tuple[int | str, ...]:
    return tuple(one if isinstance(one, int | str) else one.id for one in references)

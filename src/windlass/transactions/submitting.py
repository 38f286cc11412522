"""Submits jobs through a connection of the user's, in the transaction that is open there."""

from collections.abc import Sequence
from typing import Any, ParamSpec, TypeVar, overload

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.messages.jobs import NewWorkflow
from windlass.tasks.submitting import Submits, about_one
from windlass.tasks.values.containers import named_arguments
from windlass.transactions.catching import active_catcher, watch_later
from windlass.transactions.drivers import POSTGRESQL, Driver, find_driver
from windlass.transactions.requests import Request, check_request
from windlass.transactions.statements import Plan, Rows, explain_failure, on_postgres, on_sqlite

P = ParamSpec("P")
R = TypeVar("R")


class TransactionJob:
    """A job of a transaction that has not committed yet, as far as we know.

    Its `id` is final: after the commit, `client.job(job.id)` is a handle on it. If the transaction
    is rolled back, no job has this id on PostgreSQL; on SQLite, a later one may get it.
    """

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    @property
    def id(self) -> int:
        """Returns the job's number."""
        return self._number

    def __windlass_reference__(self) -> int:
        """Returns the reference to the job's result for another job's arguments."""
        return self._number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransactionJob) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self._number)

    def __repr__(self) -> str:
        return f"<job {self._number} of a transaction>"


@overload
def submit_in(
    connection: Any, task: Submits[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> TransactionJob: ...
@overload
def submit_in(connection: Any, task: str, /, **kwargs: Any) -> TransactionJob: ...
@overload
def submit_in(connection: Any, task: JobSpec, /) -> TransactionJob: ...
def submit_in(connection: Any, task: Any, /, *args: Any, **kwargs: Any) -> TransactionJob:
    """Submits a job in the transaction of `connection`: it exists if and only if that commits.

    `task` is a function marked with `@windlass.task`, the name of a task, or a `JobSpec`;
    options are those of the task: `submit_in(connection, add.options(retries=3), 1, 2)`. Bad input
    raises here. `connection` is one of psycopg 3, SQLAlchemy (or a session), Django, sqlite3 or
    apsw; its database is the one of the queue. Without a transaction it submits at once.
    """
    spec = _spec(task, args, kwargs)
    with about_one(spec):
        return submit_many_in(connection, [spec])[0]


def submit_many_in(
    connection: Any, jobs: Sequence[JobSpec], workflow: str | NewWorkflow | None = None
) -> list[TransactionJob]:
    """Submits jobs as `submit_in` does, all or none of them; optionally as a new workflow."""
    request, driver, plan = _prepare(connection, jobs, workflow)
    if driver.run is None:
        raise InvalidInput(
            "connection", "a blocking connection; use submit_in_async", _kind(connection)
        )
    taken: Sequence[int] = ()
    try:
        statement = next(plan)
        while True:
            statement = plan.send(driver.run(statement))
    except StopIteration as done:
        taken = done.value
    except Exception as error:
        _raise_explained(error)
    return [TransactionJob(job) for job in request.ids(taken)]


@overload
async def submit_in_async(
    connection: Any, task: Submits[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> TransactionJob: ...
@overload
async def submit_in_async(connection: Any, task: str, /, **kwargs: Any) -> TransactionJob: ...
@overload
async def submit_in_async(connection: Any, task: JobSpec, /) -> TransactionJob: ...
async def submit_in_async(
    connection: Any, task: Any, /, *args: Any, **kwargs: Any
) -> TransactionJob:
    """Works like `submit_in`, over an async connection.

    The connection is one of psycopg 3 (`AsyncConnection`), asyncpg, aiosqlite or SQLAlchemy, or an
    `AsyncSession`.
    """
    spec = _spec(task, args, kwargs)
    with about_one(spec):
        return (await submit_many_in_async(connection, [spec]))[0]


async def submit_many_in_async(
    connection: Any, jobs: Sequence[JobSpec], workflow: str | NewWorkflow | None = None
) -> list[TransactionJob]:
    """Works like `submit_many_in`, over an async connection."""
    request, driver, plan = _prepare(connection, jobs, workflow)
    if driver.run_async is None:
        raise InvalidInput("connection", "an async connection; use submit_in", _kind(connection))
    await watch_later(connection)
    taken: Sequence[int] = ()
    try:
        statement = next(plan)
        while True:
            rows: Rows = await driver.run_async(statement)
            statement = plan.send(rows)
    except StopIteration as done:
        taken = done.value
    except Exception as error:
        _raise_explained(error)
    return [TransactionJob(job) for job in request.ids(taken)]


def _prepare(
    connection: Any, jobs: Sequence[JobSpec], workflow: str | NewWorkflow | None
) -> tuple[Request, Driver, Plan]:
    driver = find_driver(connection)
    new = NewWorkflow(name=workflow) if isinstance(workflow, str) else workflow
    request = check_request(jobs, new)
    catcher = active_catcher(connection)
    if catcher is not None:
        return request, driver, catcher.plan(connection, driver, request)
    if driver.database == POSTGRESQL:
        return request, driver, on_postgres(request)
    return request, driver, on_sqlite(request, driver.own_library)


def _spec(task: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> JobSpec:
    if isinstance(task, JobSpec):
        if args or kwargs:
            raise InvalidInput("args", "inside the job", "more beside it")
        return task
    if isinstance(task, str):
        if args:
            raise InvalidInput("args", "given by name", "arguments by position")
        return JobSpec(task=task, args=named_arguments(kwargs))
    if not isinstance(task, Submits):
        expected = "a function marked with @windlass.task, the name of a task, or a JobSpec"
        raise InvalidInput("task", expected, repr(task))
    made: JobSpec = task.job(*args, **kwargs)
    return made


def _kind(connection: object) -> str:
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def _raise_explained(error: Exception) -> None:
    if isinstance(error, WindlassError):
        raise error
    explained = explain_failure(error)
    if explained is None:
        raise error
    raise explained from error

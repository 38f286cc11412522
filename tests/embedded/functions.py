"""Functions that embedded clients of the tests run."""

import os
import time
from pathlib import Path

import windlass
from windlass.domain.values.errors import InvalidInput


@windlass.task
def add(left: int, right: int) -> int:
    print("adding", left, right)
    return left + right


@windlass.task
async def double(value: int) -> int:
    return 2 * value


@windlass.task
def variable(name: str) -> str | None:
    return os.environ.get(name)


@windlass.task
def variables() -> dict[str, str]:
    return dict(os.environ)


@windlass.task
def fail(message: str) -> None:
    raise ValueError(message)


@windlass.task
def nothing() -> None:
    pass


@windlass.task(retries=3)
def wait_for_file(path: str, seen: str) -> int:
    """Says where it runs, then waits until the file is there."""
    Path(seen).write_text(f"{os.getpid()} {windlass.current().attempt}")
    while not Path(path).exists():
        time.sleep(0.01)
    return windlass.current().attempt


@windlass.task
def plan(count: int) -> list[int]:
    """An orchestrator: adds jobs to its own workflow, twice under one key."""
    job = windlass.current()
    requests = [windlass.JobSpec(task="shell", args={"argv": ["true"]}) for _ in range(count)]
    first = job.submit_many(requests, key="parts")
    if job.submit_many(requests, key="parts") != first:
        raise ValueError("asked again, other jobs were made")
    return [*first, job.submit(add, 1, 2)]


@windlass.task
async def plan_async(count: int) -> list[int]:
    requests = [windlass.JobSpec(task="shell", args={"argv": ["true"]}) for _ in range(count)]
    return await windlass.current().submit_many_async(requests)


@windlass.task
def plan_badly() -> str:
    try:
        windlass.current().submit_many([windlass.JobSpec(task="shell", args={"argv": []})])
    except InvalidInput as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


@windlass.task
def plan_one_badly() -> str:
    try:
        add.options(priority="urgent").submit(1, 2)
    except InvalidInput as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


@windlass.task
def submit_children(count: int) -> dict[str, object]:
    """Submits child jobs as a program would, and asks one of them for its result."""
    made = add.options(priority="+1").map(range(count), range(count))
    last = add.options(after=made).submit(1, 2)
    try:
        last.result()
    except windlass.WindlassError as error:
        return {"ids": [job.id for job in made], "last": last.id, "refusal": str(error)}
    raise ValueError("a job waited for its child")


@windlass.task
async def submit_children_async(count: int) -> list[int]:
    first = await double.submit_async(1)
    return [first.id, *(job.id for job in await double.map_async(range(count)))]


@windlass.task
def fail_deeply(depth: int) -> None:
    """Raises an error with a long traceback, a long message and many causes."""
    if depth:
        try:
            fail_deeply(depth - 1)
        except ValueError as error:
            raise ValueError("x" * 10_000) from error
    raise ValueError("bottom \0 \ud800")


@windlass.task
def count_up(count: int):  # type: ignore[no-untyped-def]
    return (number for number in range(count))

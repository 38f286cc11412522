"""Waiting for many jobs at once: `gather` and `as_completed`, blocking and asynchronous.

One request covers thousands of jobs, so nobody asks about each of them.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final, Literal, TypeVar, cast, overload

from windlass.client.blocking.base import Runs, each
from windlass.client.blocking.handles import JobHandle
from windlass.client.errors import JobFailed, ResultTimeout
from windlass.client.handles import WAIT_SECONDS, AsyncJob, SpooledJob, why_waiting
from windlass.client.service import Service
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import DurationLike, counted, wait_seconds
from windlass.messages.jobs import Job, WaitRequest
from windlass.tasks.steps import join, join_async
from windlass.tasks.submitting import ChildJob

R = TypeVar("R")

PART: Final = 5_000  # jobs of one request
MAX_ORIGINS: Final = 20  # aborted jobs of one call whose origin is looked up

Until = Literal["any", "all", "failure"]


@overload
def gather(
    *handles: JobHandle[R],
    timeout: DurationLike | None = None,
    return_exceptions: Literal[False] = False,
) -> list[R]: ...
@overload
def gather(
    *handles: JobHandle[R], timeout: DurationLike | None = None, return_exceptions: bool
) -> list[R | JobFailed]: ...


def gather(
    *handles: JobHandle[Any], timeout: DurationLike | None = None, return_exceptions: bool = False
) -> list[Any]:
    """Returns the results of jobs in the order given, once all have ended.

    Raises `JobFailed` as soon as a job did not complete; with `return_exceptions`, the errors
    stand among the results instead. Raises `ResultTimeout` when the time is up.
    """
    if not handles:
        return []
    if all(isinstance(handle, ChildJob) for handle in handles):
        return join(cast("tuple[ChildJob, ...]", handles), timeout, return_exceptions)
    _check_handles(handles, JobHandle, "gather")
    jobs = [handle.asynchronous for handle in handles]
    owner = _one_client(handles)
    return owner.run(gather_async(*jobs, timeout=timeout, return_exceptions=return_exceptions))


def as_completed(
    handles: Iterable[JobHandle[R]], timeout: DurationLike | None = None
) -> Iterator[JobHandle[R]]:
    """Yields jobs as they end, whether they complete or not; their results are at hand then.

    Raises `ResultTimeout` when the time is up.
    """
    given = list(handles)
    if not given:
        return
    _check_handles(given, JobHandle, "as_completed")
    owner = _one_client(given)
    by_job = {id(handle.asynchronous): handle for handle in given}
    ended = as_completed_async([handle.asynchronous for handle in given], timeout)
    try:
        for job in each(owner, ended):
            yield by_job[id(job)]
    finally:
        owner.run(_close(ended))


@overload
async def gather_async(
    *handles: AsyncJob[R],
    timeout: DurationLike | None = None,
    return_exceptions: Literal[False] = False,
) -> list[R]: ...
@overload
async def gather_async(
    *handles: AsyncJob[R], timeout: DurationLike | None = None, return_exceptions: bool
) -> list[R | JobFailed]: ...


async def gather_async(
    *handles: AsyncJob[Any], timeout: DurationLike | None = None, return_exceptions: bool = False
) -> list[Any]:
    """Does what `gather` does, for async code."""
    until: Until = "all" if return_exceptions else "failure"
    results: dict[int, Any] = {}
    asked = 0
    if handles and all(isinstance(job, ChildJob) for job in handles):
        return await join_async(cast("tuple[ChildJob, ...]", handles), timeout, return_exceptions)
    _check_handles(handles, AsyncJob, "gather_async")
    async with aclosing(_ended(handles, wait_seconds(timeout), until)) as ends:
        async for job, end in ends:
            if end.state == "completed":
                results[id(job)] = await job.value_of(end)
                continue
            asked += end.state == "aborted"
            failed = JobFailed(end) if asked > MAX_ORIGINS else await job.failure_of(end)
            if not return_exceptions:
                raise failed
            results[id(job)] = failed
    return [results[id(job)] for job in handles]


async def as_completed_async(
    handles: Iterable[AsyncJob[R]], timeout: DurationLike | None = None
) -> AsyncGenerator[AsyncJob[R], None]:
    """Does what `as_completed` does, for async code."""
    given = list(handles)
    _check_handles(given, AsyncJob, "as_completed_async")
    async with aclosing(_ended(given, wait_seconds(timeout), "any")) as ends:
        async for job, end in ends:
            job.note_end(end)
            yield job


async def _ended(
    jobs: Sequence[AsyncJob[R]], timeout: float | None, until: Until
) -> AsyncGenerator[tuple[AsyncJob[R], Job], None]:
    """Yields every job with its end, as the servers answer. Jobs in a spool have no ids until all
    of them are delivered.
    """
    loop = asyncio.get_running_loop()
    deadline = None if timeout is None else loop.time() + timeout
    for job in jobs:
        if isinstance(job, SpooledJob):
            await job.until_delivered(
                None if deadline is None else max(0.0, deadline - loop.time())
            )
    waiting: dict[tuple[int, int], list[AsyncJob[R]]] = {}
    for job in jobs:
        waiting.setdefault((id(job.service), job.id), []).append(job)
    keys = list(waiting)
    parts = [keys[start : start + PART] for start in range(0, len(keys), PART)]
    open_parts = {
        loop.create_task(_ask(waiting, part, deadline, until)): part for part in _by_service(parts)
    }
    try:
        while open_parts:
            done, _ = await asyncio.wait(open_parts, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                part = open_parts.pop(task)
                ends = task.result()
                for end in ends:
                    key = (part[0][0], end.id)
                    for job in waiting.pop(key):
                        yield job, job.checked(end)
                left = [key for key in part if key in waiting]
                if left and deadline is not None and loop.time() >= deadline:
                    first = min(job for _, job in waiting)
                    raise await _timed_out(waiting, first, len(jobs), timeout)
                if left:
                    open_parts[loop.create_task(_ask(waiting, left, deadline, until))] = left
    finally:
        for task in open_parts:
            task.cancel()


def _by_service(
    parts: Iterable[list[tuple[int, int]]],
) -> Iterator[list[tuple[int, int]]]:
    """Divides parts so that each belongs to one service."""
    for part in parts:
        for service in dict.fromkeys(service for service, _ in part):
            yield [key for key in part if key[0] == service]


async def _ask(
    waiting: dict[tuple[int, int], list[AsyncJob[R]]],
    part: Sequence[tuple[int, int]],
    deadline: float | None,
    until: Until,
) -> list[Job]:
    service: Service = waiting[part[0]][0].service
    left = WAIT_SECONDS
    if deadline is not None:
        left = min(left, max(0.0, deadline - asyncio.get_running_loop().time()))
    ids, times = [job for _, job in part], [waiting[one][0].given_at for one in part]
    request = WaitRequest(ids=ids, timeout=left, until=until, given_at=times)
    return (await service.wait_some(request)).jobs


async def _timed_out(
    waiting: dict[tuple[int, int], list[AsyncJob[R]]],
    first: int,
    total: int,
    timeout: float | None,
) -> ResultTimeout:
    ids = sorted({job for _, job in waiting})
    service = next(jobs[0].service for (_, job), jobs in waiting.items() if job == first)
    why = await why_waiting(service, first)
    which = f"{len(ids)} of {counted(total, 'job')} {'has' if len(ids) == 1 else 'have'}"
    message = f"{which} not ended after {timeout:g} s; job {first}{why}"
    return ResultTimeout(message, ids)


def _check_handles(given: Sequence[object], kind: type, call: str) -> None:
    """Refuses a list of jobs where the jobs themselves are expected, and other mistakes."""
    for one in given:
        if isinstance(one, kind):
            continue
        hint = "pass the jobs of a list as gather(*jobs)" if isinstance(one, list) else ""
        if isinstance(one, ChildJob):
            hint = "gather waits for children of this job alone, or for jobs of a client"
        if isinstance(one, JobHandle | AsyncJob):
            other = call.removesuffix("_async") if call.endswith("_async") else f"{call}_async"
            hint = f"use {other}"
        raise InvalidInput(
            f"jobs of {call}", f"handles of jobs ({kind.__name__})", type(one).__name__, hint
        )


def _one_client(handles: Sequence[JobHandle[Any]]) -> Runs:
    owners = {id(handle.client): handle.client for handle in handles}
    if len(owners) > 1:
        raise InvalidInput("handles", "those of one client", f"{len(owners)} clients")
    return next(iter(owners.values()))


async def _close(jobs: AsyncGenerator[Any, None]) -> None:
    await jobs.aclose()

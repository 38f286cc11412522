"""A blocking client that can be awaited: rows written for the asynchronous one run on it, too.

Its blocking calls run in threads, as the loop of a test may be what answers them.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, Self

from windlass.client import client, handles, resources, workflows
from windlass.client.blocking import client as blocking
from windlass.client.blocking import handles as blocking_handles
from windlass.client.blocking import resources as blocking_resources
from windlass.client.builder import AsyncWorkflowBlock

TWINS: Final[dict[type, type]] = {
    blocking.Client: client.AsyncClient,
    blocking_handles.JobHandle: handles.AsyncJob,
    blocking_handles.WorkflowHandle: workflows.AsyncWorkflow,
    blocking_handles.Workflow: AsyncWorkflowBlock,
    blocking_resources.Workers: resources.AsyncWorkers,
    blocking_resources.Queues: resources.AsyncQueues,
    blocking_resources.Templates: resources.AsyncTemplates,
    blocking_resources.Schedules: resources.AsyncSchedules,
    blocking_resources.Pools: resources.AsyncPools,
    blocking_resources.Tokens: resources.AsyncTokens,
}
END: Final = object()


class Awaited:
    """One object of the blocking client, with the methods of its asynchronous twin."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        self._twin = next(TWINS[kind] for kind in type(wrapped).__mro__ if kind in TWINS)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(type(self.wrapped), name):  # only the asynchronous one has it
            handle = self.wrapped
            work = getattr(handle.asynchronous, name)
            return lambda *given: _call(handle.client.run, (work(*given),), {})
        found = getattr(self.wrapped, name)
        if not callable(found):
            return awaited(found)
        twin = getattr(self._twin, name)
        if inspect.iscoroutinefunction(twin):
            return lambda *given, **named: _call(found, given, named)

        def call(*given: Any, **named: Any) -> Any:
            result = found(*map(_plain, given), **named)
            return _items(result) if isinstance(result, Iterator) else awaited(result)

        return call

    async def __aenter__(self) -> Self:
        await _call(self.wrapped.__enter__, (), {})
        return self

    async def __aexit__(self, *error: object) -> None:
        await _call(self.wrapped.__exit__, error, {})


def awaited(value: Any) -> Any:
    """Returns what a blocking call returned, with handles that can be awaited."""
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(awaited(one) for one in value)
    return Awaited(value) if any(kind in TWINS for kind in type(value).__mro__) else value


def _plain(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return value.wrapped if isinstance(value, Awaited) else value


async def _call(method: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    given = tuple(map(_plain, given))
    return awaited(await asyncio.to_thread(method, *given, **named))  # noqa: TID251


async def _items(found: Iterator[Any]) -> AsyncIterator[Any]:
    while (item := await asyncio.to_thread(next, found, END)) is not END:  # noqa: TID251
        yield item

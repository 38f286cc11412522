"""Starts programs from event loops in any thread.

uvloop starts none while a loop of another thread does: it raises `RuntimeError`, and what it had
opened stays open. A program may have several embedded clients, each with a loop of its own.
"""

import asyncio
import threading
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

_STARTING: Final = threading.Lock()


async def start_program(*argv: str, **options: Any) -> asyncio.subprocess.Process:
    """Does what `asyncio.create_subprocess_exec` does, one start at a time in this process."""
    return await _begin_alone(asyncio.create_subprocess_exec(*argv, **options))


@coroutine
def _begin_alone(starting: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Runs the first step, which forks, while no other thread does the same."""
    try:
        with _STARTING:
            waits_for = starting.send(None)
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:
                waits_for = starting.throw(error)
            else:
                waits_for = starting.send(sent)
    except StopIteration as done:
        value: T = done.value
        return value

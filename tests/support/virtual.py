"""Run a test's coroutine in virtual time: what would wait for an hour takes no time."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from windlass.simulator.virtual_loop import VirtualLoop
from windlass.simulator.world import EXPECTED

T = TypeVar("T")


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Returns what the coroutine returns; an unexpected error of a task fails the test."""
    failed: list[BaseException] = []

    def watch(task: Any) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, EXPECTED):
            failed.append(error)

    loop = VirtualLoop(watch)
    try:
        return loop.run_until_complete(main)
    finally:
        for task in loop.open_tasks():
            task.cancel()
        loop.run_until_complete(_nothing())
        loop.close()
        if failed:
            raise failed[0]


async def _nothing() -> None:
    """Lets canceled tasks end."""

"""Run a transaction's coroutine to its end in one step.

The stores that live in this process never suspend, so a transaction that reaches its end
without giving up control is atomic by construction. One that waits for something else
would let others in between, and is refused.
"""

from collections.abc import Awaitable
from typing import TypeVar

from windlass.ports.loop_time import INLINE

T = TypeVar("T")


def drive(coroutine: Awaitable[T]) -> T:
    """Returns what `coroutine` returns or raises; RuntimeError if it tries to wait."""
    steps = coroutine.__await__()
    outside = INLINE.set(True)
    try:
        steps.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        INLINE.reset(outside)
    steps.close()
    raise RuntimeError("a store transaction tried to wait")

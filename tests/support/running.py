"""Run a coroutine from a plain test function."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end on a fresh event loop and return what it returns."""
    return asyncio.run(coroutine)

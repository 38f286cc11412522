"""Functions that embedded clients of the tests run."""

import os
import time
from pathlib import Path

import windlass


@windlass.task
def add(left: int, right: int) -> int:
    print("adding", left, right)
    return left + right


@windlass.task
async def double(value: int) -> int:
    return 2 * value


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

"""Functions that the tests submit."""

import windlass


@windlass.task
def add(a: int, b: int) -> int:
    return a + b


@windlass.task
def wait_for_it(signal: str) -> str:
    return str(windlass.wait_for(signal))

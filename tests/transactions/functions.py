"""Functions that the tests submit."""

import windlass


@windlass.task
def add(a: int, b: int) -> int:
    return a + b

"""Functions that the tests submit."""

from pathlib import Path

import windlass


@windlass.task
def add(a: int, b: int) -> int:
    return a + b


@windlass.task
def wait_for_it(signal: str) -> str:
    return str(windlass.wait_for(signal))


@windlass.task
def read_file(file: Path) -> str:
    return file.read_text()

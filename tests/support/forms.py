"""The short form of a long test runs with `make test`, the long one with `make test-long`."""

import os
from typing import Final

LONG: Final = bool(os.environ.get("LONG_TESTS"))


def by_form(short: int, long: int) -> int:
    """Returns the size of this run."""
    return long if LONG else short

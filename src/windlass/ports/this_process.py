"""What this process does: which database files it has open, and whether it runs tests.

Tests must not reach a real farm by accident.
"""

import os
import sys
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import Conflict

_OPEN: Final[dict[Path, int]] = {}  # how often

ALLOW: Final = "WINDLASS_TESTS"
REAL: Final = "real"
CURRENT: Final = "PYTEST_CURRENT_TEST"  # set by pytest, also for the programs that a test starts


def note_open(path: Path) -> None:
    """Notes that the engine has opened a file."""
    own = path.resolve()
    _OPEN[own] = _OPEN.get(own, 0) + 1


def note_closed(path: Path) -> None:
    """Notes that the engine has closed it again."""
    own = path.resolve()
    left = _OPEN.pop(own, 0) - 1
    if left > 0:
        _OPEN[own] = left


def is_open_here(path: Path) -> bool:
    """Returns whether the engine has this file open in this process."""
    return path.resolve() in _OPEN


def refuse_in_tests(what: str) -> None:
    """Raises if tests run here, unless they may reach real servers and databases."""
    test = os.environ.get(CURRENT, "").partition(" (")[0]
    if (test or under_django()) and not is_allowed():
        raise Conflict(
            "test_run",
            f"{what} in the test {test or 'of Django'} would reach a real farm: use the fixture "
            f"`windlass`, which runs jobs in the test; set {ALLOW}={REAL} in the environment of "
            "tests that are meant to reach one",
        )


def is_allowed() -> bool:
    """Returns whether somebody said that tests of this process may reach real farms."""
    return os.environ.get(ALLOW) == REAL


def under_django() -> bool:
    """Returns whether Django's test runner, or another one, has set Django up for tests."""
    mail = sys.modules.get("django.core.mail")
    return hasattr(mail, "outbox")

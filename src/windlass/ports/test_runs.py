"""Knows whether tests run in this process, which must not reach a real farm by accident."""

import os
import sys
from typing import Final

from windlass.domain.values.errors import Conflict

ALLOW: Final = "WINDLASS_TESTS"
REAL: Final = "real"
CURRENT: Final = "PYTEST_CURRENT_TEST"  # set by pytest, also for the programs that a test starts


def refuse_in_tests(what: str) -> None:
    """Raises if tests run here, unless they may reach real servers and databases."""
    if is_allowed():
        return
    test = os.environ.get(CURRENT, "").partition(" (")[0]
    if test or under_django():
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

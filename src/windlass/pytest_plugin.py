"""The pytest plugin: the fixture `windlass` runs jobs in the test's process, in virtual time.

pytest loads this module in every environment that has Windlass, so it imports nothing before the
fixture is used.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from windlass.testing import WindlassFixture


@pytest.fixture
def windlass() -> Iterator["WindlassFixture"]:
    """Runs jobs in this process, in virtual time: `submit`, `drain()`, `advance("1h")`."""
    from windlass.testing import run_in_test

    with run_in_test() as made:
        yield made

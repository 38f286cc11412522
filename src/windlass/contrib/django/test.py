"""Jobs in tests of Django: `class OrderTest(WindlassTestMixin, TestCase)`."""

import unittest

from windlass.testing import WindlassFixture, run_in_test


class WindlassTestMixin(unittest.TestCase):
    """Gives each test `self.windlass`, which receives the jobs that it submits.

    It is what pytest has as the fixture `windlass`: `self.windlass.jobs()` lists them,
    `self.windlass.drain()` runs them in the test.
    """

    windlass: WindlassFixture

    def setUp(self) -> None:
        """Starts catching jobs, before the test does anything."""
        super().setUp()
        self.windlass = self.enterContext(run_in_test())

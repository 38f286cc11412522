"""The pytest plugin: the fixture `windlass` runs jobs in the test's process, in virtual time.

pytest loads this module in every environment that has Windlass, so it imports nothing before the
fixture is used.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from windlass.embedded.virtual import VirtualFleet
    from windlass.front import Client


class WindlassFixture:
    """A client, whose methods it has, and the time its jobs run in.

    `client` is the default client while the test runs. `secrets` are those of the worker, and
    `metadata` is what it offers to jobs that ask for something.
    """

    def __init__(self, client: "Client", fleet: "VirtualFleet") -> None:
        self.client = client
        self.secrets: dict[str, str] = fleet.secrets
        self.metadata: dict[str, Any] = fleet.metadata
        self._fleet = fleet

    @property
    def now(self) -> "datetime":
        """The time, which only `advance` moves."""
        return self._fleet.now

    def drain(self) -> int:
        """Runs all jobs that are ready, and those that follow; returns how many."""
        return self._fleet.drain()

    def advance(self, duration: "float | str | timedelta") -> int:
        """Lets time pass: delayed jobs, retries and schedules run when they are due."""
        return self._fleet.advance(duration)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


@pytest.fixture
def windlass() -> Iterator[WindlassFixture]:
    """Runs jobs in this process, in virtual time: `submit`, `drain()`, `advance("1h")`."""
    from windlass.embedded.virtual import VirtualFleet
    from windlass.front import AsyncClient, Client, set_default_client

    fleet = VirtualFleet().open()
    client = Client(client=AsyncClient(service=fleet.service), thread=fleet.thread)
    set_default_client(client)
    try:
        yield WindlassFixture(client, fleet)
    finally:
        set_default_client(None)
        fleet.close()

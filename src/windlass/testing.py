"""Jobs that run in the process of a test, in virtual time, for any test runner."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from windlass.embedded.virtual import VirtualFleet
from windlass.front import AsyncClient, Client, set_default_client, set_test_client
from windlass.transactions.catching import set_catcher

if TYPE_CHECKING:
    from datetime import datetime, timedelta


class WindlassFixture:
    """A client, with all its methods, and the virtual time of its jobs.

    `client` is the default client while the test runs. `secrets` are the worker's, and `metadata`
    is what it offers to jobs with requirements.
    """

    def __init__(self, client: Client, fleet: VirtualFleet) -> None:
        self.client = client
        self.secrets: dict[str, str] = fleet.secrets
        self.metadata: dict[str, Any] = fleet.metadata
        self._fleet = fleet

    @property
    def now(self) -> "datetime":
        """Returns the time, which only `advance` moves."""
        return self._fleet.now

    def drain(self) -> int:
        """Runs all ready jobs and those that follow; returns how many ran."""
        return self._fleet.drain()

    def advance(self, duration: "float | str | timedelta") -> int:
        """Advances the time: delayed jobs, retries and schedules run when they are due."""
        return self._fleet.advance(duration)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


@contextmanager
def run_in_test() -> Iterator[WindlassFixture]:
    """Runs jobs in this process until the block ends; submissions in transactions are caught."""
    fleet = VirtualFleet().open()
    client = Client(client=AsyncClient(service=fleet.service), thread=fleet.thread)
    set_test_client(client)
    set_catcher(fleet.catcher)
    try:
        yield WindlassFixture(client, fleet)
    finally:
        set_catcher(None)
        set_default_client(None)
        fleet.close()

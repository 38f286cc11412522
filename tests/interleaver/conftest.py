"""One stage for all scenes of a test process: a database and the connections on it."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from tests.interleaver.explore import Explorer
from tests.interleaver.stage import Stage
from tests.support.postgres import PostgresServer


class Theatre:
    """An explorer and the event loop it lives on."""

    def __init__(self, dsn: str) -> None:
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.stage = Stage(dsn)
        self._runner.run(self.stage.open())
        self.explorer = Explorer(self.stage)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._runner.run(coroutine)

    def close(self) -> None:
        self._runner.run(self.stage.close())
        self._runner.close()


@pytest.fixture(scope="session")
def theatre(postgres_server: PostgresServer) -> Iterator[Theatre]:
    opened = Theatre(postgres_server.create_database())
    yield opened
    opened.close()

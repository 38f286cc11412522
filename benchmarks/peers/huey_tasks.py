"""What huey's consumer imports: its queue on the store that WINDLASS_PEER_URL names.

A `redis://` address, or the path of an SQLite file. Results are not kept.
"""

import os
from typing import Any

import huey
from huey import RedisHuey, SqliteHuey

from benchmarks.fleet.functions import say_start
from benchmarks.peers.declared import URL


def open_huey(url: str) -> Any:
    """huey on Redis or SQLite, as its documentation says for speed: no results."""
    if url.startswith("redis://"):
        return RedisHuey("bench", url=url, results=False)
    return SqliteHuey("bench", filename=url, results=False, fsync=True)


queue: huey.Huey = open_huey(os.environ[URL])


@queue.task()  # type: ignore[untyped-decorator]
def noop(n: int) -> None:
    """Nothing: only the queue is measured."""


@queue.task()  # type: ignore[untyped-decorator]
def start(address: str, number: int) -> None:
    """Say when it began."""
    say_start(address, number)

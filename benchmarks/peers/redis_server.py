"""A Redis of our own for the peers that need one, from Debian's `redis-server`.

As in the comparison of peers: an append-only file, written to disk every second.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from benchmarks.fleet.processes import stopped_in_the_end, until
from tests.support.debian import missing_reason
from tests.support.loopback import free_port

PROGRAM = "redis-server"
TRIES = 5


def missing() -> str | None:
    """Why there is no Redis, in one line; None if there is."""
    return missing_reason(PROGRAM)


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """A server with its data in `folder`; gives its address."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in reversed(range(TRIES)):
        port = free_port()
        command = [PROGRAM, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]
        with stopped_in_the_end(command, folder / "redis.log") as process:
            if _answers(process, port):
                yield f"redis://127.0.0.1:{port}/0"
                return
            if not left:
                raise RuntimeError(f"redis-server did not start: {folder / 'redis.log'}")


def _answers(process: "subprocess.Popen[bytes]", port: int) -> bool:
    """Whether it came up; False if it ended, as when another process took the port."""

    def state() -> str | None:
        if process.poll() is not None:
            return "ended"
        try:
            with redis.Redis(port=port) as connection:
                connection.ping()
        except redis.ConnectionError:
            return None
        return "up"

    return until("redis-server", state) == "up"

"""A real PgBouncer in transaction mode before a PostgreSQL of the tests; it comes from Debian."""

import os
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.debian import find_program
from tests.support.loopback import die_with_parent, free_port
from tests.support.postgres import USER

START_SECONDS = 60
POLL_SECONDS = 0.02
TRIES = 5

# Three sessions for each database: transactions of one client are soon in different ones.
CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 500
{more}
"""


class PgBouncer:
    """A running pooler. Use `start_pgbouncer()` to get one, and `stop()` when done."""

    def __init__(self, database: int, port: int, process: "subprocess.Popen[bytes]") -> None:
        self._database = database
        self._port = port
        self._process = process

    def dsn(self, direct: str, listen: bool = False) -> str:
        """The address of a database through the pooler; `listen`: with the way past it."""
        name = urlsplit(direct).path
        past = f"?direct=127.0.0.1:{self._database}" if listen else ""
        return f"postgresql://{USER}@127.0.0.1:{self._port}{name}{past}"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def start_pgbouncer(database: int, folder: Path, more: str = "") -> PgBouncer:
    """Start a pooler before the PostgreSQL at this port, and wait until it accepts.

    `more` are further lines of its configuration.
    """
    program = find_program("pgbouncer")
    assert program is not None
    for _ in range(TRIES):
        port = free_port()
        file = folder / f"{port}.ini"
        file.write_text(CONFIGURATION.format(server=database, user=USER, port=port, more=more))
        process = _launch(program, file)
        if _accepts(port, process):
            return PgBouncer(database, port, process)
        process.kill()
        process.wait()
    raise RuntimeError(f"PgBouncer did not start: {file.with_suffix('.log').read_text()[-500:]}")


def _launch(program: str, file: Path) -> "subprocess.Popen[bytes]":
    """Start it with its configuration as input, which another user may not be able to reach."""
    user = ["-u", "nobody"] if os.getuid() == 0 else []
    with file.open("rb") as configuration, file.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(
            [program, "-q", *user, "/dev/stdin"],
            stdin=configuration,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it only asks
        )


def _accepts(port: int, process: "subprocess.Popen[bytes]") -> bool:
    give_up_at = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < give_up_at:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(POLL_SECONDS)
        else:
            return process.poll() is None
    return False

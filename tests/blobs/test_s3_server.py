"""The S3 server of the tests leaves nothing behind in the temporary folder."""

import tempfile
from pathlib import Path

from tests.support.s3 import SOCKETS, S3Server, start_s3


def left_by(server: S3Server) -> set[Path]:
    """Returns what is named after its folder, its process or its ports."""
    places = {SOCKETS, Path(tempfile.gettempdir())}
    names = (server.folder.name, f"weed.*.{server.process.pid}")
    return {
        *server.sockets(),
        *(path for place in places for name in names for path in place.glob(name)),
    }


def test_a_stopped_server_leaves_nothing(s3_server: S3Server) -> None:
    server = start_s3()
    try:
        assert server.folder in left_by(server)
        assert set(server.ports).isdisjoint(s3_server.ports)
    finally:
        server.stop()
    assert left_by(server) == set()
    assert s3_server.process.poll() is None

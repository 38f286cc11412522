"""The fixture `blobs`: each test of the suite runs once for every place for blobs."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.store.conformance.driver import SettableClock
from tests.support.s3 import S3Server
from windlass.blobs.local import LocalBlobs
from windlass.blobs.memory import MemoryBlobs
from windlass.ports.blobs import BlobInfo, Blobs

T = TypeVar("T")

KINDS = ("memory", "local", "s3")
_buckets = itertools.count(1)


class Place:
    """A place for blobs and the loop that its calls run on."""

    def __init__(self, kind: str, blobs: Blobs) -> None:
        self.kind = kind
        self.blobs = blobs
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        async def joined() -> bytes:
            return b"".join([c async for c in self.blobs.stream(key, start, end)])

        return self.run(joined())

    def list(self, prefix: str, after: str = "") -> Sequence[BlobInfo]:
        async def listed() -> Sequence[BlobInfo]:
            return [info async for info in self.blobs.list(prefix, after)]

        return self.run(listed())

    def close(self) -> None:
        self.run(self.blobs.close())
        self._runner.close()


async def chunks_of(*parts: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
    """These parts, and then perhaps a failure."""
    for part in parts:
        yield part
    if error is not None:
        raise error


def open_blobs(kind: str, request: pytest.FixtureRequest, folder: Path) -> Blobs:
    if kind == "memory":
        return MemoryBlobs(SettableClock())
    if kind == "local":
        return LocalBlobs(folder / "blobs")
    from windlass.blobs.s3 import S3Blobs

    server: S3Server = request.getfixturevalue("s3_server")
    return S3Blobs(f"bucket-{next(_buckets)}", prefix="windlass", **server.options())


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty place of each kind."""
    opened = Place(request.param, open_blobs(request.param, request, tmp_path))
    yield opened
    opened.close()

"""A pipeline's state with a clock that tests set, and buckets that misbehave on request."""

import asyncio
import itertools
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.store.conformance.driver import SettableClock
from tests.support.s3 import S3Server
from windlass_fuzz.buckets.bucket import Bucket, Listed, OutcomeUnknown, Stored
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.buckets.layout import KINDS, build_key
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.state_file import Runtime

T = TypeVar("T")

KINDS_OF_BUCKETS = ("directory", "s3")
_numbers = itertools.count(1)


class FixedJitter:
    """Jitter that is always the same."""

    def fraction(self) -> float:
        return 0.5


class CountingNonces:
    """Nonces that count up."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def secret(self) -> str:
        return f"nonce{next(self._numbers)}"


def a_runtime(clock: SettableClock | None = None) -> Runtime:
    return Runtime(clock or SettableClock(), FixedJitter(), CountingNonces())


def open_bucket(kind: str, request: pytest.FixtureRequest, folder: Path) -> Bucket:
    if kind == "directory":
        return DirectoryBucket(folder / "bucket")
    from windlass_fuzz.buckets.s3 import S3Bucket

    server: S3Server = request.getfixturevalue("s3_server")
    name = server.make_bucket(f"fuzzing-{next(_numbers)}")
    return S3Bucket(name, "below", **server.options())


class ForwardingBucket:
    """A bucket that forwards every call; tests override what is to fail."""

    persistent = True

    def __init__(self, inner: Bucket) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    async def get(self, key: str) -> Stored | None:
        return await self.inner.get(key)

    async def put_if(
        self,
        key: str,
        body: bytes,
        *,
        expected: str | None,
        attributes: Mapping[str, str] | None = None,
    ) -> Stored:
        return await self.inner.put_if(key, body, expected=expected, attributes=attributes)

    async def put(self, key: str, source: Path | bytes) -> None:
        await self.inner.put(key, source)

    async def download(self, key: str, path: Path) -> bool:
        return await self.inner.download(key, path)

    async def exists(self, key: str) -> bool:
        return await self.inner.exists(key)

    async def delete(self, keys: Sequence[str]) -> None:
        await self.inner.delete(keys)

    async def list(self, prefix: str) -> AsyncIterator[Listed]:
        async for found in self.inner.list(prefix):
            yield found

    async def delete_expired(self, prefix: str, older_than_ms: int, now_ms: int) -> int:
        return await self.inner.delete_expired(prefix, older_than_ms, now_ms)

    async def close(self) -> None:
        await self.inner.close()


class LostAnswer:
    """A write that is applied but whose answer gets lost; others write before the next read."""

    def __init__(self, *then: Callable[[], Awaitable[Any]]) -> None:
        self.then = then


class Scripted(ForwardingBucket):
    """A bucket whose conditional writes meet these faults, one after another, and then none.

    `LostAnswer` writes and raises `OutcomeUnknown`, "unsent" only raises it; an exception is
    raised instead of writing; a function runs first, such as a faster writer.
    """

    def __init__(self, inner: Bucket, *misfortunes: Any) -> None:
        super().__init__(inner)
        self.misfortunes = list(misfortunes)
        self.writes = 0

    async def put_if(
        self,
        key: str,
        body: bytes,
        *,
        expected: str | None,
        attributes: Mapping[str, str] | None = None,
    ) -> Stored:
        self.writes += 1
        misfortune = self.misfortunes.pop(0) if self.misfortunes else None
        if isinstance(misfortune, Exception):
            raise misfortune
        if misfortune == "unsent":
            raise OutcomeUnknown(key)
        if callable(misfortune):
            await misfortune()
            misfortune = None
        stored = await self.inner.put_if(key, body, expected=expected, attributes=attributes)
        if isinstance(misfortune, LostAnswer):
            for writer in misfortune.then:
                await writer()
            raise OutcomeUnknown(key)
        return stored


class Rig:
    """A pipeline on a bucket, and the loop on which its steps run."""

    def __init__(self, bucket: Bucket, kind: str = "directory") -> None:
        self.kind = kind
        self.clock = SettableClock()
        self.runtime = a_runtime(self.clock)
        self.bucket = bucket
        self.pipeline = self.another_pipeline("one")
        self._runner = asyncio.Runner()

    def another_pipeline(self, holder: str, bucket: Bucket | None = None) -> Pipeline:
        return Pipeline(bucket or self.bucket, "toy", self.runtime, holder)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def upload(self, *commits: str) -> None:
        """Uploads both binaries of these commits."""
        for commit in commits:
            for kind in KINDS:
                self.run(self.bucket.put(build_key("toy", kind, commit), b"binary"))

    def lose(self, *commits: str) -> None:
        """Deletes the binaries of these commits."""
        keys = [build_key("toy", kind, commit) for commit in commits for kind in KINDS]
        self.run(self.bucket.delete(keys))

    def close(self) -> None:
        self.run(self.bucket.close())
        self._runner.close()


def rigs(request: pytest.FixtureRequest, folder: Path, kind: str) -> Iterator[Rig]:
    rig = Rig(open_bucket(kind, request, folder), kind)
    yield rig
    rig.close()

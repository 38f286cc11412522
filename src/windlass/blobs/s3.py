"""Objects in an S3 bucket, or a compatible service."""

import os
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any, Final, Literal

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from windlass.blobs.faults import ENDPOINTS, from_bucket
from windlass.blobs.last_answers import await_at_exit
from windlass.domain.values.errors import NotFound
from windlass.ports.blobs import BlobInfo, check_key, check_prefix

CHUNK: Final = 1024 * 1024
PART: Final = 8 * 1024 * 1024  # size of a part in an upload; S3 wants at least 5 MiB
PARTS_AT_ONCE: Final = 2
DELETE_AT_ONCE: Final = 1_000


class S3Blobs:
    """Keeps blobs in one bucket, under a prefix.

    Missing options (keys, region, endpoint) come from the usual environment variables for S3.
    """

    def __init__(self, bucket: str, prefix: str = "", **options: Any) -> None:
        endpoint = str(options.get("endpoint") or endpoint_of_environment())
        client: Any = {"timeout": "60s", **options.pop("client_options", {})}
        if endpoint.startswith("http://"):
            client["allow_http"] = True
        await_at_exit()
        self._where = f"bucket {bucket}"
        self._store = S3Store(
            bucket,
            prefix=check_prefix(prefix) or None,
            client_options=client,
            **options,
        )

    async def put(self, key: str, data: bytes) -> None:
        try:
            await obstore.put_async(self._store, check_key(key), data, use_multipart=False)
        except BaseError as error:
            raise from_bucket(error, self._where) from error

    async def put_stream(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        """Uploads in parts, so that memory holds only a few; a failed upload is aborted."""
        size = 0

        async def counted() -> AsyncIterator[bytes]:
            nonlocal size
            async for chunk in chunks:
                size += len(chunk)
                yield bytes(chunk)

        try:
            await obstore.put_async(
                self._store, check_key(key), counted(),
                chunk_size=PART, max_concurrency=PARTS_AT_ONCE,
            )  # fmt: skip
        except BaseError as error:
            raise from_bucket(error, self._where) from error
        return size

    async def get(self, key: str) -> bytes | None:
        try:
            found = await obstore.get_async(self._store, check_key(key))
            return bytes(await found.bytes_async())
        except FileNotFoundError:
            return None
        except BaseError as error:
            raise from_bucket(error, self._where) from error

    async def stream(
        self, key: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        check_key(key)
        try:
            if end is None:
                size = (await obstore.head_async(self._store, key))["size"]
                end = max(size, start)
            if end <= start:
                await obstore.head_async(self._store, key)
                return
            span = (start, end)
            found = await obstore.get_async(self._store, key, options={"range": span})
            async for chunk in found.stream(min_chunk_size=CHUNK):
                yield bytes(chunk)
        except FileNotFoundError as error:
            raise NotFound("object", key) from error
        except BaseError as error:
            raise from_bucket(error, self._where) from error

    async def delete(self, keys: Sequence[str]) -> None:
        checked = [check_key(key) for key in keys]
        for first in range(0, len(checked), DELETE_AT_ONCE):
            try:
                await obstore.delete_async(self._store, checked[first : first + DELETE_AT_ONCE])
            except FileNotFoundError:
                continue
            except BaseError as error:
                raise from_bucket(error, self._where) from error

    async def list(self, prefix: str, after: str = "") -> AsyncIterator[BlobInfo]:
        folder = check_prefix(prefix)
        try:
            found = obstore.list(self._store, folder or None, offset=after or None)
            async for objects in found:
                for item in objects:
                    modified_ms = int(item["last_modified"].timestamp() * 1000)
                    yield BlobInfo(item["path"], item["size"], modified_ms)
        except BaseError as error:
            raise from_bucket(error, self._where) from error

    async def presign(self, method: Literal["GET", "PUT"], key: str, ttl_ms: int) -> str | None:
        """Returns a URL that allows this one access for a limited time."""
        ttl = timedelta(milliseconds=ttl_ms)
        try:
            return await obstore.sign_async(self._store, method, check_key(key), ttl)
        except BaseError as error:
            raise from_bucket(error, self._where) from error

    async def check(self) -> None:
        """Does nothing."""

    async def close(self) -> None:
        """Does nothing: connections close with the object."""


def endpoint_of_environment() -> str:
    """Returns the endpoint from the environment; empty means AWS."""
    return next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")

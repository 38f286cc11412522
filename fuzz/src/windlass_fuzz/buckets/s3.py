"""A bucket on S3, or on a server with the same API."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from windlass.blobs.faults import from_bucket
from windlass.blobs.s3 import S3Blobs, endpoint_of_environment
from windlass.domain.values.errors import InvalidInput, StoreUnavailable
from windlass.ports.blobs import check_key, check_prefix
from windlass_fuzz.buckets.bucket import (
    ConcurrentWrite,
    Listed,
    OutcomeUnknown,
    PreconditionFailed,
    Stored,
)

CHUNK: Final = 1024 * 1024


class S3Bucket:
    """A `Bucket` below a prefix of one S3 bucket.

    Settings missing from `options` (credentials, region, endpoint) come from the usual AWS
    environment variables. Conditional writes use a second client without retries: a retry by
    the library could fail on the condition because its first attempt had succeeded.
    """

    persistent = True

    def __init__(self, bucket: str, prefix: str = "", **options: Any) -> None:
        if not bucket:
            raise InvalidInput("bucket", "s3://NAME or s3://NAME/PREFIX", "s3://")
        self.name = f"s3://{bucket}/{prefix}".rstrip("/")
        self._blobs = S3Blobs(bucket, prefix, **options)
        endpoint = str(options.get("endpoint") or endpoint_of_environment())
        client: Any = {"timeout": "60s", **options.pop("client_options", {})}
        if endpoint.startswith("http://"):
            client["allow_http"] = True
        folder = check_prefix(prefix) or None
        made = {"prefix": folder, "client_options": client, **options}
        once: Any = {"max_retries": 0, "retry_timeout": timedelta(seconds=60)}
        self._store = S3Store(bucket, **made)
        self._once = S3Store(bucket, **{**made, "retry_config": once})

    async def get(self, key: str) -> Stored | None:
        try:
            found = await obstore.get_async(self._store, check_key(key))
            body = bytes(await found.bytes_async())
        except FileNotFoundError as error:
            self._check_bucket(error)
            return None
        except BaseError as error:
            raise from_bucket(error, self.name) from error
        return Stored(body, found.meta["e_tag"] or "", dict(found.attributes))

    async def put_if(
        self,
        key: str,
        body: bytes,
        *,
        expected: str | None,
        attributes: Mapping[str, str] | None = None,
    ) -> Stored:
        mode: Any = "create" if expected is None else {"e_tag": expected}
        try:
            put = await obstore.put_async(
                self._once, check_key(key), body, mode=mode, attributes=dict(attributes or {}),
                use_multipart=False,
            )  # fmt: skip
        except PreconditionError:
            raise PreconditionFailed(key) from None
        except AlreadyExistsError:
            # The library raises this for a 412 to "only if absent" and for every 409.
            raise (PreconditionFailed if expected is None else ConcurrentWrite)(key) from None
        except FileNotFoundError as error:
            self._check_bucket(error, certain=expected is None)
            raise PreconditionFailed(key) from None
        except BaseError as error:
            raise _outcome_unknown(error, key, self.name) from error
        return Stored(body, put["e_tag"] or "", attributes or {})

    async def put(self, key: str, source: Path | bytes) -> None:
        try:
            await obstore.put_async(self._store, check_key(key), source)
        except FileNotFoundError as error:
            self._check_bucket(error, certain=not isinstance(source, Path) or source.exists())
            raise
        except BaseError as error:
            raise from_bucket(error, self.name) from error

    async def download(self, key: str, path: Path) -> bool:
        try:
            found = await obstore.get_async(self._store, check_key(key))
            with path.open("wb") as file:
                async for chunk in found.stream(min_chunk_size=CHUNK):
                    file.write(bytes(chunk))
        except FileNotFoundError as error:
            self._check_bucket(error)
            return False
        except BaseError as error:
            path.unlink(missing_ok=True)
            raise from_bucket(error, self.name) from error
        return True

    async def exists(self, key: str) -> bool:
        try:
            await obstore.head_async(self._store, check_key(key))
        except FileNotFoundError:
            return False
        except BaseError as error:
            raise from_bucket(error, self.name) from error
        return True

    async def delete(self, keys: Sequence[str]) -> None:
        await self._blobs.delete(keys)

    async def list(self, prefix: str) -> AsyncIterator[Listed]:
        async for found in self._blobs.list(prefix):
            yield Listed(found.key, found.size, found.modified_ms)

    async def delete_expired(self, prefix: str, older_than_ms: int, now_ms: int) -> int:
        """Does nothing: the bucket's lifecycle rule deletes old builds (`fuzz init` sets it)."""
        del prefix, older_than_ms, now_ms
        return 0

    async def close(self) -> None:
        """Does nothing: connections close with the object."""

    def _check_bucket(self, error: FileNotFoundError, *, certain: bool = False) -> None:
        """Raises if the bucket itself does not exist, rather than only an object in it."""
        if certain or "NoSuchBucket" in str(error):
            message = (
                f"bucket {self.name} does not exist; correct its name, or create it with "
                "`windlass fuzz init`"
            )
            raise StoreUnavailable(message, outcome_unknown=False) from None


def _outcome_unknown(error: BaseError, key: str, where: str) -> Exception:
    """Distinguishes a permanent refusal from a failure after which the write may have been
    applied.
    """
    name = type(error).__name__
    if name in ("PermissionDeniedError", "UnauthenticatedError", "NotSupportedError"):
        return from_bucket(error, where)
    return OutcomeUnknown(key)

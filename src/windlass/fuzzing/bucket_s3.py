"""A bucket of S3, or of what speaks like it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from windlass.blobs.faults import from_bucket
from windlass.blobs.keys import check_key, check_prefix
from windlass.blobs.s3 import S3Blobs, endpoint_of_environment
from windlass.domain.values.errors import InvalidInput
from windlass.fuzzing.bucket import Busy, Changed, Listed, Stored, Unclear

CHUNK: Final = 1024 * 1024


class S3Bucket:
    """`Bucket` in one bucket, below a prefix of it.

    Whatever `options` leaves out (keys, region, endpoint) is taken from the environment
    variables that other programs use for S3. Two clients look at it: what is written under a
    condition is sent once, for the library's own second try would meet its first one.
    """

    endures = True

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
        self._once = S3Store(bucket, retry_config=once, **made)

    async def get(self, key: str) -> Stored | None:
        try:
            found = await obstore.get_async(self._store, check_key(key))
            body = bytes(await found.bytes_async())
        except FileNotFoundError:
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
            raise Changed(key) from None
        except AlreadyExistsError:
            # Said of a 412 to "only if absent" and of every 409; a look at it tells which.
            raise (Changed if expected is None else Busy)(key) from None
        except FileNotFoundError:
            raise Changed(key) from None
        except BaseError as error:
            raise _unclear(error, key, self.name) from error
        return Stored(body, put["e_tag"] or "", attributes or {})

    async def put(self, key: str, source: Path | bytes) -> None:
        try:
            await obstore.put_async(self._store, check_key(key), source)
        except BaseError as error:
            raise from_bucket(error, self.name) from error

    async def download(self, key: str, path: Path) -> bool:
        try:
            found = await obstore.get_async(self._store, check_key(key))
            with path.open("wb") as file:
                async for chunk in found.stream(min_chunk_size=CHUNK):
                    file.write(bytes(chunk))
        except FileNotFoundError:
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

    async def sweep(self, prefix: str, older_than_ms: int, now_ms: int) -> int:
        """The bucket's lifecycle rule does it (`fuzz init`)."""
        del prefix, older_than_ms, now_ms
        return 0

    async def close(self) -> None:
        """Connections end with the object."""


def _unclear(error: BaseError, key: str, where: str) -> Exception:
    """What was refused for good is an error; of all else nobody knows whether it was done."""
    name = type(error).__name__
    if name in ("PermissionDeniedError", "UnauthenticatedError", "NotSupportedError"):
        return from_bucket(error, where)
    return Unclear(key)

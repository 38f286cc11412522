"""The port for logs and artifacts: objects under keys, in a directory or a bucket.

Keys are checked, so that none leads outside its directory or prefix.
"""

import re
from collections.abc import AsyncIterator, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from windlass.domain.values.errors import InvalidInput

MAX_KEY: Final = 500
_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")


def check_key(key: str, field: str = "key") -> str:
    """Returns the key if it is valid."""
    if len(key) > MAX_KEY or not all(map(_SEGMENT.match, key.split("/"))):
        expected = f"names of letters, digits, - and _ separated by /, at most {MAX_KEY} characters"
        raise InvalidInput(field, expected, key)
    return key


def check_prefix(prefix: str) -> str:
    """Returns a folder prefix without its trailing slash."""
    folder = prefix.removesuffix("/")
    return check_key(folder, "prefix") if folder else ""


class BlobInfo(NamedTuple):
    """One object."""

    key: str
    size: int
    modified_ms: int


class Blobs(Protocol):
    """Objects that are written whole and never changed.

    Keys are `/`-separated; the caller makes them from ids and digests, never from names
    that users chose. A put that returned is durable.
    """

    async def put(self, key: str, data: bytes) -> None: ...

    async def put_stream(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        """Writes the chunks and returns the number of bytes; a failure leaves nothing behind."""

    async def get(self, key: str) -> bytes | None: ...

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yields the bytes from `start` to `end` (exclusive); raises NotFound."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Deletes these objects; missing ones are ignored."""

    def list(self, prefix: str, after: str = "") -> AsyncIterator[BlobInfo]:
        """Yields the objects under the folder `prefix`, ascending by key, after the key `after`.

        An empty `prefix` means all. (Some buckets sort a folder by its name alone: `a/`
        before `a-b`.)
        """

    async def presign(self, method: Literal["GET", "PUT"], key: str, ttl_ms: int) -> str | None:
        """Returns a URL that allows this one access, or None where that is not supported."""

    async def check(self) -> None:
        """Raises if nothing can be written; a bucket counts as writable until it refuses
        something.
        """

    async def close(self) -> None: ...

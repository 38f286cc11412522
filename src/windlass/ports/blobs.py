"""Where logs and artifacts are kept: objects under keys, in a directory or a bucket."""

from collections.abc import AsyncIterator, Sequence
from typing import Literal, NamedTuple, Protocol


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
        """Write what `chunks` yields; how many bytes that were. Nothing stays if it fails."""
        ...

    async def get(self, key: str) -> bytes | None: ...

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from `start` to `end` (exclusive); raises NotFound."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove these objects; those that are gone already are passed over."""
        ...

    def list(self, prefix: str, after: str = "") -> AsyncIterator[BlobInfo]:
        """Objects in the folder `prefix` and those below it, ascending by key.

        Only those whose keys come behind `after`. An empty `prefix` means all. (Some
        buckets sort a folder by its name alone: `a/` before `a-b`.)
        """
        ...

    async def presign(self, method: Literal["GET", "PUT"], key: str, ttl_ms: int) -> str | None:
        """An address that allows this one access, or None where there is no such thing."""
        ...

    async def close(self) -> None: ...

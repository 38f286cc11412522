"""Where a pipeline keeps everything: objects under keys, and writes that hold a condition.

Several machines work on one bucket and know nothing of each other, so what they change is
written only where it is still what they have read. Three things may come of such a write
besides success; they are ordinary, and `chain.py` knows what to do about each.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class Stored(NamedTuple):
    """One object as it was read; `etag` names this content, not this moment."""

    body: bytes
    etag: str
    attributes: Mapping[str, str] = {}


class Listed(NamedTuple):
    """One object in a list."""

    key: str
    size: int
    modified_ms: int


class PreconditionFailed(Exception):
    """Nothing was written: the object is not the expected one any more (412)."""


class ConcurrentWrite(Exception):
    """Nothing was written: the server has another write to this key under way (409)."""


class OutcomeUnknown(Exception):
    """No answer came back: it may have been written or not."""


class Bucket(Protocol):
    """Objects of one bucket, below a prefix of it, or of one directory."""

    @property
    def name(self) -> str:
        """How people know it, for messages."""
        ...

    @property
    def persistent(self) -> bool:
        """Whether writes stay; False for a dry run."""
        ...

    async def get(self, key: str) -> Stored | None:
        """The object with its attributes, or None."""
        ...

    async def put_if(
        self,
        key: str,
        body: bytes,
        *,
        expected: str | None,
        attributes: Mapping[str, str] | None = None,
    ) -> Stored:
        """Write if the object still has this ETag, or with None if there is still no object.

        Raises `PreconditionFailed`, `Busy` or `Unclear`.
        """
        ...

    async def put(self, key: str, source: Path | bytes) -> None:
        """Write an object whatever was there before; it appears whole or not at all."""
        ...

    async def download(self, key: str, path: Path) -> bool:
        """Copy an object into a file; False, and no file, if there is none."""
        ...

    async def exists(self, key: str) -> bool: ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are gone already are passed over."""
        ...

    def list(self, prefix: str) -> AsyncIterator[Listed]:
        """The objects below a folder, ascending by key."""
        ...

    async def delete_expired(self, prefix: str, older_than_ms: int, now_ms: int) -> int:
        """Remove what is older, where nothing else does so; how many objects that were."""
        ...

    async def close(self) -> None: ...

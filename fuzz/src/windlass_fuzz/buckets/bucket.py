"""The bucket protocol: objects under keys, with conditional writes.

Several machines share a bucket without knowing of each other. They therefore replace an object
only if it is still the version they read. Besides success, such a write has three outcomes;
`state/state_file.py` handles each of them.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class Stored(NamedTuple):
    """An object as it was read. The ETag identifies its content, not a moment in time."""

    body: bytes
    etag: str
    attributes: Mapping[str, str] = {}


class Listed(NamedTuple):
    """One object in a listing."""

    key: str
    size: int
    modified_ms: int


class PreconditionFailed(Exception):
    """Nothing was written: the object is no longer the expected version (HTTP 412)."""


class ConcurrentWrite(Exception):
    """Nothing was written: the server is handling another write to this key (HTTP 409)."""


class OutcomeUnknown(Exception):
    """No answer arrived: the write may or may not have been applied."""


class Bucket(Protocol):
    """The objects below a prefix of one bucket, or below one directory."""

    @property
    def name(self) -> str:
        """Returns the name to show in messages."""
        ...

    @property
    def persistent(self) -> bool:
        """Returns False for a dry run, whose writes are discarded."""
        ...

    async def get(self, key: str) -> Stored | None:
        """Returns the object with its attributes, or None."""
        ...

    async def put_if(
        self,
        key: str,
        body: bytes,
        *,
        expected: str | None,
        attributes: Mapping[str, str] | None = None,
    ) -> Stored:
        """Writes if the object still has this ETag, or with None if it still does not exist.

        Raises `PreconditionFailed`, `ConcurrentWrite` or `OutcomeUnknown`.
        """
        ...

    async def put(self, key: str, source: Path | bytes) -> None:
        """Writes an object unconditionally. Readers see all of it or nothing."""
        ...

    async def download(self, key: str, path: Path) -> bool:
        """Copies an object to a file. Returns False, and creates no file, if there is none."""
        ...

    async def exists(self, key: str) -> bool: ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Deletes objects and ignores those that no longer exist."""
        ...

    def list(self, prefix: str) -> AsyncIterator[Listed]:
        """Lists the objects below a folder, in ascending order of their keys."""
        ...

    async def delete_expired(self, prefix: str, older_than_ms: int, now_ms: int) -> int:
        """Deletes old objects if nothing else does so, and returns how many it deleted."""
        ...

    async def close(self) -> None: ...

"""A bucket for `--dry-run`: reads the real objects and keeps all writes in memory."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from windlass_fuzz.buckets.bucket import Bucket, Listed, PreconditionFailed, Stored
from windlass_fuzz.buckets.directory import etag_of


class DryRunBucket:
    """A `Bucket` whose writes are discarded when the process ends."""

    persistent = False

    def __init__(self, inner: Bucket) -> None:
        self._inner = inner
        self._written: dict[str, Stored | None] = {}

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def written(self) -> list[str]:
        """Returns the keys that would have been written or deleted, in order of first use."""
        return list(self._written)

    async def get(self, key: str) -> Stored | None:
        return self._written[key] if key in self._written else await self._inner.get(key)

    async def put_if(
        self,
        key: str,
        body: bytes,
        *,
        expected: str | None,
        attributes: Mapping[str, str] | None = None,
    ) -> Stored:
        there = await self.get(key)
        if (None if there is None else there.etag) != expected:
            raise PreconditionFailed(key)
        stored = Stored(body, etag_of(body), attributes or {})
        self._written[key] = stored
        return stored

    async def put(self, key: str, source: Path | bytes) -> None:
        body = source if isinstance(source, bytes) else source.read_bytes()
        self._written[key] = Stored(body, etag_of(body))

    async def download(self, key: str, path: Path) -> bool:
        if key not in self._written:
            return await self._inner.download(key, path)
        stored = self._written[key]
        if stored is not None:
            path.write_bytes(stored.body)
        return stored is not None

    async def exists(self, key: str) -> bool:
        if key in self._written:
            return self._written[key] is not None
        return await self._inner.exists(key)

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._written[key] = None

    async def list(self, prefix: str) -> AsyncIterator[Listed]:
        async for found in self._inner.list(prefix):
            if found.key not in self._written:
                yield found

    async def delete_expired(self, prefix: str, older_than_ms: int, now_ms: int) -> int:
        """Deletes nothing in a dry run."""
        del prefix, older_than_ms, now_ms
        return 0

    async def close(self) -> None:
        await self._inner.close()

"""Objects in memory, for tests and the simulator."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, Literal

from windlass.domain.values.errors import NotFound
from windlass.ports.blobs import BlobInfo, check_key, check_prefix
from windlass.ports.clock import Clock

NEVER_OLD: Final = 2**62


class MemoryBlobs:
    """Keeps blobs in a dictionary. Without a clock, objects never count as old."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._objects: dict[str, tuple[bytes, int]] = {}

    async def put(self, key: str, data: bytes) -> None:
        now = NEVER_OLD if self._clock is None else self._clock.now_ms()
        self._objects[check_key(key)] = (bytes(data), now)

    async def put_stream(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        check_key(key)
        data = b"".join([chunk async for chunk in chunks])
        await self.put(key, data)
        return len(data)

    async def get(self, key: str) -> bytes | None:
        found = self._objects.get(check_key(key))
        return None if found is None else found[0]

    async def stream(
        self, key: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        data = await self.get(key)
        if data is None:
            raise NotFound("object", key)
        piece = data[start:end]
        if piece:
            yield piece

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._objects.pop(check_key(key), None)

    async def list(self, prefix: str, after: str = "") -> AsyncIterator[BlobInfo]:
        folder = check_prefix(prefix)
        start = f"{folder}/" if folder else ""
        for key in sorted(self._objects):
            if key.startswith(start) and key > after and key in self._objects:
                data, modified_ms = self._objects[key]
                yield BlobInfo(key, len(data), modified_ms)

    async def presign(self, method: Literal["GET", "PUT"], key: str, ttl_ms: int) -> str | None:
        """Returns None: memory has no URL."""
        del method, ttl_ms
        check_key(key)
        return None

    async def check(self) -> None:
        """Does nothing."""

    async def close(self) -> None:
        """Does nothing."""

"""One state file: read it, change it, and write it only if nobody else has changed it since.

A refused write is retried from the current content. If the answer to a write gets lost, we look for
its nonce in the file, or among the nonces of the writes that followed. When all retries are used
up, nothing was written and the step reports that.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from windlass.domain.values.errors import Conflict, WindlassError
from windlass.ports.clock import Chance, Clock, Secrets
from windlass_fuzz.buckets.bucket import (
    Bucket,
    ConcurrentWrite,
    OutcomeUnknown,
    PreconditionFailed,
    Stored,
)
from windlass_fuzz.state.documents import Codec, MalformedFile, Version

T = TypeVar("T")

RETRIES: Final = 3
PAUSE_MS: Final = 100


class UnreadableState(WindlassError):
    """A state file that cannot be read. It stays as it is, and a copy is kept."""

    code = "state_unreadable"

    def __init__(self, bucket: str, key: str, why: str, copy: str) -> None:
        super().__init__(bucket, key, why, copy)
        self.key = key
        self.copy = copy

    @property
    def message(self) -> str:
        bucket, key, why, copy = self.args
        return (
            f"cannot read {key} in {bucket}: {why}; the file was not changed, and a copy is at "
            f"{copy}. Fix the file, or delete it to start afresh, then run this again"
        )


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a step needs besides a bucket: a clock, jitter, and unique nonces."""

    clock: Clock
    chance: Chance
    secrets: Secrets

    def nonce(self) -> str:
        """Returns a short alphanumeric nonce: some are stored in attributes or typed by people."""
        return "".join(c for c in self.secrets.secret() if c.isalnum())[:16]


class UpdateResult(NamedTuple, Generic[T]):
    """The content of the file after an update, and the content before it.

    `applied` is False if nothing had to change.
    """

    value: T
    applied: bool
    before: T


class _Read(NamedTuple, Generic[T]):
    value: T
    version: Version
    etag: str | None


class StateFile(Generic[T]):
    """One state file."""

    def __init__(self, bucket: Bucket, key: str, codec: Codec[T], runtime: Runtime) -> None:
        self._bucket = bucket
        self.key = key
        self._codec = codec
        self._runtime = runtime

    async def read(self) -> T:
        """Returns the content, or the empty value if there is no file."""
        return (await self._read()).value

    async def version(self) -> Version:
        """Returns the version of the newest write."""
        return (await self._read()).version

    async def update(self, change: Callable[[T], T]) -> UpdateResult[T]:
        """Applies `change` to the content and writes the result; may call it several times."""
        nonce = self._runtime.nonce()
        before = await self._read()
        for turn in range(RETRIES + 1):
            wanted = change(before.value)
            if wanted == before.value:
                return UpdateResult(before.value, False, before.value)
            if await self._write(before, wanted, nonce):
                return UpdateResult(wanted, True, before.value)
            await self._pause(turn)
            now = await self._read()
            if now.version.includes(nonce):
                return UpdateResult(now.value, True, before.value)
            before = now
        raise Conflict(
            "contended",
            f"could not write {self.key} in {self._bucket.name}: others changed it during each "
            f"of {RETRIES + 1} attempts; nothing was changed, run this again",
        )

    async def _write(self, read: _Read[T], wanted: T, nonce: str) -> bool:
        body, attributes = self._codec.encode(wanted, read.version.next(nonce))
        try:
            await self._bucket.put_if(self.key, body, expected=read.etag, attributes=attributes)
        except (PreconditionFailed, ConcurrentWrite, OutcomeUnknown):
            return False
        return True

    async def _pause(self, turn: int) -> None:
        spread = 0.5 + self._runtime.chance.fraction()
        await self._runtime.clock.sleep_ms(int(PAUSE_MS * 2**turn * spread))

    async def _read(self) -> _Read[T]:
        stored = await self._bucket.get(self.key)
        if stored is None:
            return _Read(self._codec.empty, Version(), None)
        try:
            value, version = self._codec.decode(stored.body, stored.attributes)
        except MalformedFile as error:
            copy = await self._keep_aside(stored)
            raise UnreadableState(self._bucket.name, self.key, str(error), copy) from None
        return _Read(value, version, stored.etag)

    async def _keep_aside(self, stored: Stored) -> str:
        """Keeps one copy per content, so that running the step again makes no second copy."""
        folder, _, name = self.key.rpartition("/")
        digest = hashlib.sha256(stored.body).hexdigest()[:16]
        copy = f"{folder}/kept-aside/{name}.{digest}"
        if not await self._bucket.exists(copy):
            await self._bucket.put(copy, stored.body)
        return copy

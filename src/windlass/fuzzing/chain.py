"""One state file as a chain of versions: read, change, write only what follows from what was read.

A write that was refused is tried again from what is there now. A write whose answer got lost
is looked for: its nonce stands in the file, or in that of those who came after. When the
tries are spent, nothing was written and the step says so.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from windlass.domain.values.errors import Conflict, WindlassError
from windlass.fuzzing.bucket import Bucket, Busy, Changed, Stored, Unclear
from windlass.fuzzing.state import Codec, Unreadable, Version
from windlass.ports.clock import Chance, Clock, Secrets

T = TypeVar("T")

RETRIES: Final = 3
PAUSE_MS: Final = 100


class Misshapen(WindlassError):
    """A state file that cannot be read: it stays as it is, with a copy beside it."""

    code = "state_unreadable"

    def __init__(self, bucket: str, key: str, why: str, copy: str) -> None:
        super().__init__(bucket, key, why, copy)
        self.key = key
        self.copy = copy

    @property
    def message(self) -> str:
        bucket, key, why, copy = self.args
        return (
            f"expected {key} in {bucket} to be as Windlass wrote it, but {why}; it is left as it "
            f"is, a copy is kept at {copy}: put it right, or remove it to begin anew, and run "
            "this again"
        )


@dataclass(frozen=True, slots=True)
class Around:
    """What is needed besides a bucket: time, jitter, and nonces nobody else makes."""

    clock: Clock
    chance: Chance
    secrets: Secrets

    def nonce(self) -> str:
        """Letters and digits, and short: some stand in attributes, or are typed by people."""
        return "".join(c for c in self.secrets.secret() if c.isalnum())[:16]


class Written(NamedTuple, Generic[T]):
    """What stands in the file now, and what stood there when it was written.

    `applied` is False if nothing had to be changed.
    """

    value: T
    applied: bool
    before: T


class _Read(NamedTuple, Generic[T]):
    value: T
    version: Version
    etag: str | None


class Chain(Generic[T]):
    """One state file."""

    def __init__(self, bucket: Bucket, key: str, codec: Codec[T], around: Around) -> None:
        self._bucket = bucket
        self.key = key
        self._codec = codec
        self._around = around

    async def read(self) -> T:
        """What the file says; that of an empty one if there is none."""
        return (await self._read()).value

    async def version(self) -> Version:
        """Which write is the newest."""
        return (await self._read()).version

    async def update(self, change: Callable[[T], T]) -> Written[T]:
        """Write what `change` makes of the file; it may be asked several times."""
        nonce = self._around.nonce()
        before = await self._read()
        for turn in range(RETRIES + 1):
            wanted = change(before.value)
            if wanted == before.value:
                return Written(before.value, False, before.value)
            if await self._write(before, wanted, nonce):
                return Written(wanted, True, before.value)
            await self._pause(turn)
            now = await self._read()
            if now.version.includes(nonce):
                return Written(now.value, True, before.value)
            before = now
        raise Conflict(
            "contended",
            f"expected to write {self.key} in {self._bucket.name} in {RETRIES + 1} tries, but "
            "others were faster each time; nothing was changed, run this again",
        )

    async def _write(self, read: _Read[T], wanted: T, nonce: str) -> bool:
        body, attributes = self._codec.encode(wanted, read.version.next(nonce))
        try:
            await self._bucket.put_if(self.key, body, expected=read.etag, attributes=attributes)
        except (Changed, Busy, Unclear):
            return False
        return True

    async def _pause(self, turn: int) -> None:
        spread = 0.5 + self._around.chance.fraction()
        await self._around.clock.sleep_ms(int(PAUSE_MS * 2**turn * spread))

    async def _read(self) -> _Read[T]:
        stored = await self._bucket.get(self.key)
        if stored is None:
            return _Read(self._codec.empty, Version(), None)
        try:
            value, version = self._codec.decode(stored.body, stored.attributes)
        except Unreadable as error:
            copy = await self._keep_aside(stored)
            raise Misshapen(self._bucket.name, self.key, str(error), copy) from None
        return _Read(value, version, stored.etag)

    async def _keep_aside(self, stored: Stored) -> str:
        """A copy for each content, so that a step that is run again makes no second one."""
        folder, _, name = self.key.rpartition("/")
        digest = hashlib.sha256(stored.body).hexdigest()[:16]
        copy = f"{folder}/kept-aside/{name}.{digest}"
        if not await self._bucket.exists(copy):
            await self._bucket.put(copy, stored.body)
        return copy

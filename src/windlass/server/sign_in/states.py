"""States of sign-ins: signed, valid for some minutes, and good for one callback.

So a callback that nobody began costs no request to the identity provider, and we store nothing for
those that began. All servers of a store share the key.
"""

import base64
import binascii
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.clock import Clock, Secrets

LIFETIME_SECONDS: Final = 600  # how long somebody may take to sign in
REMEMBERED: Final = 10_000  # used states, against replays
KEY_PARTS: Final = ("sign_in_key_1", "sign_in_key_2")  # the store keeps numbers of 64 bits
PART_BYTES: Final = 7
TIME_BYTES: Final = 5
BODY_BYTES: Final = 16  # the time until which it counts, and randomness
MAC_BYTES: Final = 16

ReadKey = Callable[[], Awaitable[bytes]]


class States:
    """Issues states and accepts each of them once."""

    def __init__(self, read_key: ReadKey, secrets: Secrets, clock: Clock) -> None:
        self._read_key = read_key
        self._secrets = secrets
        self._clock = clock
        self._used: OrderedDict[bytes, None] = OrderedDict()

    async def issue(self) -> str:
        """Returns a new state of 43 characters."""
        until = self._clock.now_ms() // 1000 + LIFETIME_SECONDS
        noise = hashlib.sha256(self._secrets.secret().encode()).digest()
        body = until.to_bytes(TIME_BYTES, "big") + noise[: BODY_BYTES - TIME_BYTES]
        signed = body + _mac(await self._read_key(), body)
        return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()

    async def accept(self, state: str) -> bool:
        """Returns whether a server of this store issued it lately, and it was not used here."""
        body, mac = unpack(state)
        if not mac or not hmac.compare_digest(mac, _mac(await self._read_key(), body)):
            return False
        if int.from_bytes(body[:TIME_BYTES], "big") * 1000 < self._clock.now_ms():
            return False
        if body in self._used:  # Several texts stand for the same bytes.
            return False
        self._used[body] = None
        if len(self._used) > REMEMBERED:
            self._used.popitem(last=False)
        return True


def unpack(state: str) -> tuple[bytes, bytes]:
    """Returns what was signed and its signature, which is empty in what is no state."""
    try:
        signed = base64.b64decode(f"{state}=", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b"", b""
    return signed[:BODY_BYTES], signed[BODY_BYTES:]


async def shared_key(work: Work, secrets: Secrets, names: tuple[str, str] = KEY_PARTS) -> bytes:
    """Returns a key of this store; makes it once."""
    known = await work.tx.catalog.meta()
    if not all(known.get(name) for name in names):
        fresh = hashlib.sha256(secrets.secret().encode()).digest()
        for place, name in enumerate(names):
            part = int.from_bytes(fresh[place * PART_BYTES :][:PART_BYTES], "big")
            await work.tx.catalog.advance_meta(name, 0, part)
        known = await work.tx.catalog.meta()  # another server may have been first
    return b"".join(known[name].to_bytes(PART_BYTES, "big") for name in names)


def _mac(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, b"sign-in " + body, "sha256")[:MAC_BYTES]

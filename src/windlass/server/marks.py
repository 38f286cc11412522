"""Marks on answers, which callers send back: what was committed is known outside of the database.

A mark names the newest event of which this server knows that it is committed, signed with a key of
the store. If all servers were started again while their database lost commits, a mark that a
client or an agent kept proves it. Nobody can make one up, those of other installations do not fit
the key, and one that is sent again proves nothing new.
"""

import hmac
from collections import OrderedDict
from typing import Final

from windlass.domain.rows.gaps import Mark
from windlass.engine.engine import Engine
from windlass.engine.fleet.epochs import MARK_KEY, check_marks, first_lost
from windlass.ports.clock import Secrets
from windlass.server.sign_in.states import shared_key
from windlass.store.store import Marking

HEADER: Final = "Windlass-Mark"
FIELD: Final = HEADER.lower().encode()
MAC_CHARACTERS: Final = 32
MAX_LENGTH: Final = 80
REMEMBERED: Final = 10_000  # marks that were checked, or are our own
CLOCKS_APART_MS: Final = 60_000  # of the machines on which the database ran and runs


class Marks:
    """Signs marks, and checks those of the time before this server knew its database."""

    def __init__(self, engine: Engine, key: bytes) -> None:
        self._engine = engine
        self._key = key
        self._store: Marking | None = engine.store if isinstance(engine.store, Marking) else None
        self._signed: tuple[Mark | None, str] = None, ""
        self._checked: OrderedDict[bytes, None] = OrderedDict()

    def newest(self) -> str:
        """Returns the mark for an answer, empty if there is nothing to tell."""
        mark = None if self._store is None else self._store.newest_mark
        if mark is None:
            return ""
        mark = mark._replace(epoch=self._engine.catalog.epoch)
        if mark != self._signed[0]:
            body = ".".join(map(str, mark))
            self._signed = mark, f"{body}.{self._mac(body)}"
            self._note(self._signed[1].encode())
        return self._signed[1]

    async def hear(self, said: bytes) -> None:
        """Looks whether the store still has what a caller was told of."""
        if said in self._checked:
            return
        mark = self._read(said)
        if mark is None or mark.at >= self._engine.known_since + CLOCKS_APART_MS:
            return
        lost = await self._engine.store.read(lambda tx: first_lost(tx, [mark]))
        if lost is not None or mark.epoch > self._engine.catalog.epoch:
            await self._engine.run(lambda work: check_marks(work, [mark]))
            await self._engine.refresh()
        self._note(said)

    def _note(self, text: bytes) -> None:
        self._checked[text] = None
        if len(self._checked) > REMEMBERED:
            self._checked.popitem(last=False)

    def _read(self, said: bytes) -> Mark | None:
        """Returns a genuine mark."""
        if len(said) > MAX_LENGTH or not said.isascii():
            return None
        body, _, mac = said.decode().rpartition(".")
        if not hmac.compare_digest(mac, self._mac(body)):
            return None
        return Mark(*map(int, body.split(".")))

    def _mac(self, body: str) -> str:
        return hmac.digest(self._key, f"mark {body}".encode(), "sha256").hex()[:MAC_CHARACTERS]


async def make_marks(engine: Engine, secrets: Secrets) -> Marks:
    """Returns the marks of one server; all servers of a store share the key."""
    return Marks(engine, await engine.run(lambda work: shared_key(work, secrets, MARK_KEY)))

"""The workers' own route, as plain ASGI: it is called far more often than all others.

`POST /api/v1/workers/{id}/sync` with a worker's token. A connection that closes ends the
wait of its sync.
"""

import asyncio
import re
from typing import Any

import msgspec

from windlass.api.errors import Forbidden, Unauthorized
from windlass.domain.errors import InvalidInput, WindlassError
from windlass.domain.roles import Identity, Role
from windlass.engine.access import Access
from windlass.engine.engine import Engine
from windlass.server.asgi import Receive, Scope, Send, read_body, send_json
from windlass.server.errors import headers_of, status_of
from windlass.server.guard import bearer
from windlass.wire.sync import SyncRequest

PATH = re.compile(r"^/api/v1/workers/(\d{1,18})/sync$")

_decode = msgspec.json.Decoder(SyncRequest).decode
_encode = msgspec.json.Encoder().encode


class SyncRoute:
    """Answers syncs over one engine."""

    def __init__(self, engine: Engine, access: Access, body_limit: int) -> None:
        self._engine = engine
        self._access = access
        self._body_limit = body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send, worker: int) -> None:
        """Handle one request whose path matched."""
        try:
            await self._check(scope, worker)
            request = _parse(await read_body(receive, self._body_limit))
            reply = await self._sync(worker, request, receive)
        except WindlassError as error:
            await send_json(send, status_of(error), error.describe(), headers_of(error))
            return
        if reply is not None:
            await send_json(send, 200, reply)

    async def _check(self, scope: Scope, worker: int) -> None:
        token = bearer(list(scope["headers"]))
        who: Identity | None = None if token is None else await self._access.identify(token)
        if who is None:
            raise Unauthorized("a sync needs the worker's token")
        check_speaks_for(who, worker)

    async def _sync(self, worker: int, request: SyncRequest, receive: Receive) -> Any:
        if not request.wait_ms:
            return await self._engine.sync(worker, request)
        syncing = asyncio.ensure_future(self._engine.sync(worker, request))
        leaving = asyncio.ensure_future(_until_gone(receive))
        done, _ = await asyncio.wait({syncing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if syncing in done:
            return syncing.result()
        syncing.cancel()
        return None


def check_speaks_for(who: Identity, worker: int) -> None:
    """Refuse everybody but the worker itself."""
    if who.role is not Role.WORKER or who.worker != worker:
        raise Forbidden("a worker speaks only for itself")


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _parse(body: bytes) -> SyncRequest:
    try:
        return _decode(body)
    except msgspec.MsgspecError as error:
        raise InvalidInput("body", "a sync request", str(error)) from None
    except (RecursionError, UnicodeDecodeError, ValueError):
        raise InvalidInput("body", "JSON in UTF-8", "something else") from None

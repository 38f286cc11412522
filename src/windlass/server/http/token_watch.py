"""Looks at a caller's token again while its request lasts.

Nobody keeps reading, writing or waiting with a token that was revoked, has expired, or belongs to
a worker that was shut out.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import structlog

from windlass.domain.access.rights import Action, Identity, may
from windlass.domain.values.errors import WindlassError
from windlass.operations.rights import authorize
from windlass.ports.loop_time import pass_time
from windlass.server.http.asgi import Scope
from windlass.server.http.authentication import bearer
from windlass.server.services import ServerServices

RECHECK_SECONDS: Final = 2.0  # between two looks at the token

log = structlog.get_logger("windlass.server")


class TokenWatch:
    """Knows whether the token of one request still gives its caller the right to it."""

    __slots__ = ("_action", "_caller", "_path", "_services", "_token")

    def __init__(
        self, services: ServerServices, scope: Scope, caller: Identity, action: Action
    ) -> None:
        self._services = services
        self._caller = caller
        self._action = action
        self._path: str = scope["path"]
        self._token = bearer(scope["headers"]) or ""

    async def until_refused(self) -> None:
        """Returns when the token was revoked or changed, has expired, or was shut out."""
        while may(await self._identify(), self._action):
            await pass_time(RECHECK_SECONDS)
        log.info("cut_off", path=self._path, error="its token is no longer valid")

    async def check(self) -> None:
        """Raises `Unauthorized` or `Forbidden` if the token is no longer good for this."""
        authorize(await self._identify(), self._action)

    async def checked(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yields the chunks of a body, as long as the token is valid."""
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        async for chunk in chunks:
            if loop.time() - looked_at >= RECHECK_SECONDS:
                looked_at = loop.time()
                await self.check()
            yield chunk

    async def _identify(self) -> Identity | None:
        """Returns the caller as it is now; None if the token stands for it no more."""
        before = self._caller
        try:
            most_ms = int(RECHECK_SECONDS * 1000)
            now = await self._services.access.identify(self._token, most_ms)
        except WindlassError:
            return before  # a store that does not answer revokes nothing
        same = now is not None and now._replace(shut_out=before.shut_out) == before
        return now if same else None

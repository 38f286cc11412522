"""An HTTP proxy in front of a real S3 server that can answer with faults."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web
from yarl import URL

from tests.fuzzing.support.http_server import serving


class FaultProxy:
    """Gives conditional writes the faults of `script`, one each, and forwards everything else.

    409 and 412 are answered without asking the server; "lost" asks it and then closes the
    connection without an answer; 503 means an overloaded server.
    """

    def __init__(self, target: str) -> None:
        self.script: list[int | str] = []
        self.writes = 0
        self.address = ""
        self._target = target

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        fault: int | str | None = None
        if request.method == "PUT" and {"If-Match", "If-None-Match"} & set(request.headers):
            self.writes += 1
            fault = self.script.pop(0) if self.script else None
        if isinstance(fault, int):
            return web.Response(status=fault, text=f"<Error><Code>Fault{fault}</Code></Error>")
        url = URL(self._target + request.raw_path, encoded=True)
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(request.method, url, data=body, headers=request.headers) as reply,
        ):
            content = await reply.read()
            headers = {
                name: value for name, value in reply.headers.items()
                if name.lower() not in ("transfer-encoding", "connection", "content-length")
            }  # fmt: skip
        if fault == "lost":
            assert request.transport is not None
            request.transport.close()
        if request.method == "HEAD":
            headers["Content-Length"] = reply.headers.get("Content-Length", "0")
        return web.Response(status=reply.status, body=content, headers=headers)


@asynccontextmanager
async def fault_proxy(target: str) -> AsyncIterator[FaultProxy]:
    proxy = FaultProxy(target)
    async with serving(proxy.handle) as proxy.address:
        yield proxy

"""How answers are sent."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final

import msgspec

from windlass.operations.dispatch.answers import JSON, Complete, Stream
from windlass.server.connections.refusals import SAFE_HEADERS
from windlass.server.http.asgi import (
    Receive,
    Send,
    unless_disconnected,
    unless_first,
    until_disconnected,
)

JSON_FIELD: Final = (b"content-type", JSON.encode())
NO_CONTENT: Final = 204

encode = msgspec.json.Encoder().encode


async def send_complete(send: Send, reply: Complete) -> None:
    """Sends a reply whose body is known."""
    fields = _fields(reply.headers) if reply.headers else [*SAFE_HEADERS]
    for cookie in reply.cookies:
        fields.append((b"set-cookie", cookie.encode()))
    if reply.status != NO_CONTENT:
        kind = JSON_FIELD if reply.media_type is JSON else _kind_field(reply.media_type)
        fields.append(kind)
        fields.append((b"content-length", b"%d" % len(reply.body)))
    await send({"type": "http.response.start", "status": reply.status, "headers": fields})
    await send({"type": "http.response.body", "body": reply.body})


async def send_stream(
    receive: Receive, send: Send, stream: Stream, stopping: asyncio.Event
) -> None:
    """Sends a stream until it ends or the client leaves.

    It is cut off when the caller's token is no longer valid, an endless one also when the server
    stops. It lacks its last chunk then, so that the client knows there is more.
    """
    fields = [(b"content-type", stream.media_type.encode()), *_fields(stream.headers)]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    sending = _send_chunks(send, stream.chunks)
    if stream.until_refused is None and not stream.endless:
        await unless_disconnected(sending, receive)
    else:
        cut_off = asyncio.ensure_future(_until_cut_off(stream, stopping))
        try:
            await unless_first(sending, until_disconnected(receive), asyncio.shield(cut_off))
            if cut_off.done() or (stream.endless and stopping.is_set()):
                return
        finally:
            cut_off.cancel()
    await send({"type": "http.response.body", "body": b""})


async def _until_cut_off(stream: Stream, stopping: asyncio.Event) -> None:
    if stream.until_refused is None:
        await stopping.wait()
    elif stream.endless:
        await unless_first(stream.until_refused(), stopping.wait())
    else:
        await stream.until_refused()


async def _send_chunks(send: Send, chunks: AsyncIterator[bytes]) -> None:
    try:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


def _kind_field(media_type: str) -> tuple[bytes, bytes]:
    return b"content-type", media_type.encode()


def _fields(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Returns these headers, and the safe ones that they do not replace."""
    given = {name.lower().encode(): text.encode() for name, text in headers.items()}
    return [*given.items(), *((name, text) for name, text in SAFE_HEADERS if name not in given)]

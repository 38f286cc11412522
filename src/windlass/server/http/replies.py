"""What handlers may return beside plain values, and how it is sent."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from windlass.server.connections.refusals import SAFE_HEADERS
from windlass.server.http.asgi import (
    Receive,
    Send,
    unless_disconnected,
    unless_first,
    until_disconnected,
)

T = TypeVar("T")

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
BINARY: Final = "application/octet-stream"
EVENTS: Final = "text/event-stream; charset=utf-8"

JSON_FIELD: Final = (b"content-type", JSON.encode())
NO_CONTENT: Final = 204

encode = msgspec.json.Encoder().encode


class Reply(NamedTuple, Generic[T]):
    """A value with a status other than the route's."""

    value: T
    status: int


class Complete(NamedTuple):
    """A reply whose body is known."""

    status: int
    body: bytes
    media_type: str = JSON
    headers: Mapping[str, str] = {}
    cookies: tuple[str, ...] = ()


class Stream(NamedTuple):
    """Bytes that are sent as they become known."""

    chunks: AsyncIterator[bytes]
    media_type: str
    headers: Mapping[str, str] = {}
    endless: bool = False  # follows what grows; a server that stops cuts it off
    until_refused: Callable[[], Awaitable[None]] | None = None  # returns once the caller may not


class ServerSentEvent(NamedTuple):
    """One event of an event stream, or a comment that keeps the connection alive."""

    id: str = ""
    event: str = ""
    data: bytes = b""
    comment: str = ""

    def encode(self) -> bytes:
        """Returns the event as it goes over the wire."""
        if self.comment:
            return b": %b\r\n\r\n" % self.comment.encode()
        fields = (self.id.encode(), self.event.encode(), self.data)
        return b"id: %b\r\nevent: %b\r\ndata: %b\r\n\r\n" % fields


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

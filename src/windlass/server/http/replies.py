"""How answers and errors are sent."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    InvalidTransition,
    Lost,
    NotFound,
    Overloaded,
    StoreUnavailable,
    TooManyRequests,
    WindlassError,
)
from windlass.operations.dispatch.call import JSON, Complete, Stream
from windlass.operations.dispatch.errors import (
    Forbidden,
    Malformed,
    NoRoute,
    NotJson,
    TooLarge,
    Unauthorized,
    WrongMethod,
)
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


class UnsupportedMedia(WindlassError):
    """The route does not take a body of this type."""

    code = "unsupported_media_type"

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected Content-Type {expected}, got {got[:100]}")


INTERNAL_CODE: Final = "internal"

INTERNAL: Final[dict[str, Any]] = {
    "error": {"code": INTERNAL_CODE, "message": "the server failed; its log says why"}
}

STOPPING: Final = StoreUnavailable("the server is stopping; try again", outcome_unknown=True)

STATUS: Final[dict[type[WindlassError], int]] = {
    NotJson: 400,
    Malformed: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NoRoute: 404,
    Lost: 410,
    NotFound: 404,
    WrongMethod: 405,
    Conflict: 409,
    InvalidTransition: 409,
    TooLarge: 413,
    UnsupportedMedia: 415,
    InvalidInput: 422,
    TooManyRequests: 429,
    Overloaded: 503,
    StoreUnavailable: 503,
}


def status_of(error: WindlassError) -> int:
    """Returns the HTTP status of an error."""
    if error.code == "disk_full":
        return 507
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def headers_of(error: WindlassError) -> dict[str, str]:
    """Returns the headers of an error, such as `Retry-After` where trying later helps."""
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, WrongMethod):
        return {"Allow": error.allowed}
    after = getattr(error, "retry_after_ms", None)
    if after is None and isinstance(error, StoreUnavailable):
        after = 1_000
    return {} if after is None else {"Retry-After": str(max(1, math.ceil(after / 1000)))}


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

"""Types and body reading for ASGI applications."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from windlass.domain.values.errors import InvalidInput
from windlass.operations.dispatch.errors import TooLarge

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


SMALL: Final = 64 * 1024  # bytes; smaller bodies are bounded by the number of requests


async def stream_body(scope: Scope, receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """Yields the body of a request; raises `TooLarge` as soon as it exceeds `limit` bytes."""
    _check_announced(scope, limit)
    async for chunk in _chunks(await receive(), receive, limit):
        yield chunk


async def read_body(
    scope: Scope, receive: Receive, limit: int, hold: Callable[[int], None] = lambda _: None
) -> bytes:
    """Returns the whole body of a request.

    `hold` is told of a large one before it is read; it raises if there is no room for it.
    """
    announced = _check_announced(scope, limit)
    if announced > SMALL:
        hold(announced)
    first = await receive()
    if first["type"] == "http.request" and not first.get("more_body"):
        body: bytes = first.get("body", b"")  # most bodies come in one piece
        if len(body) > limit:
            raise TooLarge(limit)
        return body
    chunks: list[bytes] = []
    async for chunk in _chunks(first, receive, limit):
        if not announced:
            hold(len(chunk))
        chunks.append(chunk)
    return b"".join(chunks)


async def until_disconnected(receive: Receive) -> None:
    """Returns when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_disconnected(work: Awaitable[Any], receive: Receive) -> Any:
    """Returns the result of `work`; cancels it and returns None if the client leaves first."""
    return await unless_first(work, until_disconnected(receive))


async def unless_first(work: Awaitable[Any], *reasons: Awaitable[Any]) -> Any:
    """Returns the result of `work`; cancels it and returns None if a reason comes first."""
    working = asyncio.ensure_future(work)
    waiting = [asyncio.ensure_future(reason) for reason in reasons]
    try:
        await asyncio.wait({working, *waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        return None
    finally:
        for reason in waiting:
            reason.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
            if not working.cancelled():
                working.exception()  # nobody is left to hear of it


async def _chunks(message: Any, receive: Receive, limit: int) -> AsyncIterator[bytes]:
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise InvalidInput("body", "complete", "only a part of it")
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise TooLarge(limit)
        if chunk:
            yield chunk
        if not message.get("more_body"):
            return
        message = await receive()


def _check_announced(scope: Scope, limit: int) -> int:
    """Returns the size of the body, 0 if it is not announced; refuses one that is too large."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            if len(value) > 18 or int(value) > limit:
                raise TooLarge(limit)
            return int(value)
    return 0

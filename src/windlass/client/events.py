"""The event log of a server, as a stream that continues after a restart."""

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from windlass.client.calls import Calls
from windlass.client.reconnect import Reconnect
from windlass.domain.values.errors import WindlassError
from windlass.messages.system import EventInfo
from windlass.ports.loop_time import pass_time

PAUSE_SECONDS: Final = 1.0
_DATA: Final = b"data: "
_COMMENT: Final = b":"
_MORE: Final = b"event: more"


class _More(msgspec.Struct):
    after: int


_decode = msgspec.json.Decoder(EventInfo).decode
_decode_more = msgspec.json.Decoder(_More).decode


async def stream_events(
    transport: Calls, query: dict[str, Any], again: Reconnect
) -> AsyncIterator[bytes]:
    """Yields events as JSON; with `follow`, endlessly."""
    stream = _resumed(transport, query, again) if query.get("follow") else _once(transport, query)
    async for data in stream:
        if data:
            yield data


async def read_events(
    transport: Calls, query: dict[str, Any], again: Reconnect
) -> AsyncIterator[EventInfo]:
    """Yields events; with `follow`, endlessly."""
    async for data in stream_events(transport, query, again):
        yield _decode(data)


async def _resumed(
    transport: Calls, query: dict[str, Any], again: Reconnect
) -> AsyncIterator[bytes]:
    """Yields events endlessly; after a server restart, continues after the last one."""
    stream = _once(transport, query)

    async def read_on() -> bytes | None:
        nonlocal stream
        try:
            return await anext(stream, None)
        except WindlassError:
            stream = _once(transport, query)
            raise

    while True:
        data = await again.insist(read_on)
        if data is None:  # A server that stops ends the stream.
            await pass_time(PAUSE_SECONDS)
            stream = _once(transport, query)
        elif data:
            query |= {"after": _decode(data).seq, "since": None, "last": None}
            yield data


async def _once(transport: Calls, query: dict[str, Any]) -> AsyncIterator[bytes]:
    """Yields the data of the events of one stream, and nothing (b"") for signs of life.

    A long answer comes in parts: each but the last says where the next one begins.
    """
    while True:
        rest, ends, after = b"", False, None
        async for chunk in transport.stream("/api/v1/events", query, "text/event-stream"):
            *lines, rest = (rest + chunk).split(b"\r\n")
            for line in lines:
                if line == _MORE:
                    ends = True
                elif line.startswith(_DATA) and ends:
                    after = _decode_more(line.removeprefix(_DATA)).after
                elif line.startswith(_DATA):
                    yield line.removeprefix(_DATA)
                elif line.startswith(_COMMENT):
                    yield b""
        if after is None:
            return
        query = {**query, "after": after, "since": None, "last": None}

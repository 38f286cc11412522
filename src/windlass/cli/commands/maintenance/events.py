"""`windlass events`: reads and follows the event log."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from windlass.cli.options.connection import (
    HERE,
    RECONNECT,
    Connection,
    WaitForServer,
    reconnect_for,
)
from windlass.cli.options.flags import Flag, Follow, Many
from windlass.cli.output.escaping import escape_json
from windlass.cli.output.text import say
from windlass.client.reconnect import Reconnect
from windlass.client.transport import Transport
from windlass.domain.values.errors import WindlassError
from windlass.ports.loop_time import pass_time
from windlass.wire.system import EventInfo

PAUSE_SECONDS: Final = 1.0
_DATA: Final = b"data: "
_COMMENT: Final = b":"

_decode = msgspec.json.Decoder(EventInfo).decode


def show_events(
    *,
    follow: Follow = False,
    last: Annotated[int | None, Parameter(name=["--last", "-n"])] = None,
    since: str | None = None,
    after: int | None = None,
    kind: Many = None,
    state: Many = None,
    job: int | None = None,
    worker: str | None = None,
    json: Flag = False,
    reconnect: WaitForServer = RECONNECT,
    at: Connection = HERE,
) -> None:
    """Print the event log: state changes of jobs, health of workers, what the loops found.

    Parameters
    ----------
    follow
        Keep printing new events.
    last
        Only the newest so many. Default: 100, without --since and --after.
    since
        Only events since a time, such as 2026-01-02T12:34:56Z, or since so long ago, such as 10m.
    after
        Only events with a higher number; --json shows the numbers.
    kind
        Only events of this kind: job, worker, workflow, log, watchdog, pool, queue, priority,
        loop, supersede, schedule, template, reaction or access. Repeatable.
    state
        Only state changes of jobs to this state. Repeatable.
    job
        Only events of this job.
    worker
        Only events that name this worker.
    json
        Print one JSON object per line.
    """
    if last is None and since is None and after is None:
        last = 100
    query = {
        "follow": follow, "last": last, "since": since, "after": after, "kind": kind,
        "state": state, "job": job, "worker": worker,
    }  # fmt: skip
    again = reconnect_for(reconnect)
    asyncio.run(_print_all(at.transport(), query, json, again))


async def _print_all(
    transport: Transport, query: dict[str, Any], json: bool, again: Reconnect
) -> None:
    try:
        followed = query["follow"]
        stream = _resumed(transport, query, again) if followed else _once(transport, query)
        async for data in stream:
            if not data:
                continue
            if json:
                say(escape_json(data.decode()))
            else:
                event = _decode(data)
                for line in event.line.splitlines():
                    say(f"{event.at} {line}")
            sys.stdout.flush()
    finally:
        await transport.close()


async def _resumed(
    transport: Transport, query: dict[str, Any], again: Reconnect
) -> AsyncIterator[bytes]:
    """Yields events for ever; continues behind the last one after a server has restarted."""
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


async def _once(transport: Transport, query: dict[str, Any]) -> AsyncIterator[bytes]:
    """Yields the data of the events of one stream, and nothing (b"") for signs of life."""
    rest = b""
    async for chunk in transport.stream("/api/v1/events", query):
        *lines, rest = (rest + chunk).split(b"\r\n")
        for line in lines:
            if line.startswith(_DATA):
                yield line.removeprefix(_DATA)
            elif line.startswith(_COMMENT):
                yield b""

"""`windlass events`: reads and follows the event log."""

import asyncio
import sys
from typing import Annotated, Any

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
from windlass.client.events import stream_events
from windlass.client.reconnect import Reconnect
from windlass.client.transport import Transport
from windlass.messages.system import EventInfo

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
        Only this many of the newest. Default: 100, without --since and --after.
    since
        Only events since a time, such as 2026-01-02T12:34:56Z, or in the last 10m.
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
        async for data in stream_events(transport, query, again):
            if json:
                say(escape_json(data.decode()))
            else:
                event = _decode(data)
                for line in event.line.splitlines():
                    say(f"{event.at} {line}")
            sys.stdout.flush()
    finally:
        await transport.close()

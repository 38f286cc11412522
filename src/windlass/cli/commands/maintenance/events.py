"""`windlass events` and `windlass audit`: read and follow the two logs of a server."""

import asyncio
import sys
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
from windlass.cli.output.text import escape_json, say
from windlass.client.events import stream_events
from windlass.client.reconnect import Reconnect
from windlass.client.transport import Transport
from windlass.clock import RealClock
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_moment, parse_duration_ms
from windlass.messages.access import AuditEntry, AuditList
from windlass.messages.system import EventInfo
from windlass.ports.loop_time import pass_time

_decode = msgspec.json.Decoder(EventInfo).decode
_encode = msgspec.json.Encoder().encode
PAUSE_SECONDS: Final = 1.0  # before the next look at the audit log


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
    asyncio.run(_print_events(at.transport(), query, json, again))


async def _print_events(
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


def show_audit(
    *,
    since: str | None = None,
    after: int = 0,
    follow: Follow = False,
    json: Flag = False,
    reconnect: WaitForServer = RECONNECT,
    at: Connection = HERE,
) -> None:
    """Print the audit log: who changed what, who was refused, and from where.

    Parameters
    ----------
    since
        Only what happened since a time, such as 2026-01-02T12:34:56Z, or in the last 7d. Default:
        everything that is kept.
    after
        Only entries with a higher id; --json shows the ids.
    follow
        Keep printing new entries.
    json
        Print one JSON object per line.
    """
    again = reconnect_for(reconnect)
    asyncio.run(_print_entries(at.transport(), _moment(since), after, follow, json, again))


async def _print_entries(
    transport: Transport, since: str | None, after: int, follow: bool, json: bool, again: Reconnect
) -> None:
    async def read() -> AuditList:
        query = {"since": since, "after": after}
        return await transport.call("GET", "/api/v1/audit", AuditList, query=query)

    try:
        while True:
            page = await again.insist(read)
            for entry in page.entries:
                say(escape_json(_encode(entry).decode()) if json else _line(entry))
                after = entry.id
            sys.stdout.flush()
            if page.next is not None:
                continue
            if not follow:
                return
            await pass_time(PAUSE_SECONDS)
    finally:
        await transport.close()


def _moment(since: str | None) -> str | None:
    """Returns a duration as the time when it began: servers would count it from each call."""
    if since is None:
        return None
    try:
        ago = parse_duration_ms(since, "since")
    except InvalidInput:
        return since  # the server knows times
    return format_moment(RealClock().now_ms() - ago)


def _line(entry: AuditEntry) -> str:
    who = entry.actor or "anonymous"
    outcome = f"{entry.status} {entry.error}" if entry.error else str(entry.status)
    times = f" ({entry.calls} times)" if entry.calls > 1 else ""
    method = entry.action.partition(" ")[0]
    about = f" ({entry.about})" if entry.about else ""
    called = f"{method} {entry.resource}{about}"
    return f"{entry.at} {who} from {entry.address}: {called}: {outcome}{times}"

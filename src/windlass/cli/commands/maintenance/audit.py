"""`windlass audit`: reads, follows and exports the audit log."""

import asyncio
import sys
from typing import Final

import msgspec

from windlass.cli.options.connection import (
    HERE,
    RECONNECT,
    Connection,
    WaitForServer,
    reconnect_for,
)
from windlass.cli.options.flags import Flag, Follow
from windlass.cli.output.escaping import escape_json
from windlass.cli.output.text import say
from windlass.client.reconnect import Reconnect
from windlass.client.transport import Transport
from windlass.clock import RealClock
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_moment, parse_duration_ms
from windlass.messages.access import AuditEntry, AuditList
from windlass.ports.loop_time import pass_time

PAUSE_SECONDS: Final = 1.0

_encode = msgspec.json.Encoder().encode


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
        Only what happened since a time, such as 2026-01-02T12:34:56Z, or since so long ago, such
        as 7d. Default: everything that is kept.
    after
        Only entries with a higher id; --json shows the ids.
    follow
        Keep printing new entries.
    json
        Print one JSON object per line.
    """
    again = reconnect_for(reconnect)
    asyncio.run(_print_all(at.transport(), _moment(since), after, follow, json, again))


async def _print_all(
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
    """Returns a duration ago as a time: a server would count it anew from each call."""
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

"""`windlass spool`: what waits in the spool of a program, and its delivery."""

import asyncio
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from windlass.cli.options.connection import HERE, RECONNECT, Connection, WaitForServer
from windlass.cli.options.flags import Flag, Json
from windlass.cli.output.tables import print_rows
from windlass.cli.output.text import print_json, say
from windlass.client.service import Service, SubmitOptions
from windlass.client.spool import ASK_S, FILE, REJECTED, UNREADABLE, Spool, SpoolFolder, Waiting
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.domain.values.quantities import counted, parse_duration_ms
from windlass.messages.jobs import SubmitRequest
from windlass.ports.loop_time import pass_time

SHOWN: Final = 3  # jobs of one submission

Folder = Annotated[Path, Parameter(help="The folder that the program names as its spool.")]


class Kept(msgspec.Struct):
    """A submission that waits."""

    number: int
    server: str
    jobs: list[str]  # their names, or tasks


class Delivered(msgspec.Struct):
    """What became of the submissions that waited for a server."""

    taken: int
    refused: int


def spool(
    folder: Folder,
    /,
    *,
    deliver: Flag = False,
    reconnect: WaitForServer = RECONNECT,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """List the submissions that wait in a spool because no server took them, or deliver them.

    Parameters
    ----------
    deliver
        Send those that wait for this server, in their order and with this token. Programs that
        open the spool do so by themselves.
    """
    if not (folder / FILE).is_file():
        raise InvalidInput("folder", "the folder of a spool", str(folder))
    if deliver:
        limit = parse_duration_ms(reconnect, "--reconnect") / 1000
        done = asyncio.run(_deliver(Spool(folder), at, limit))
        if json:
            print_json(done)
            return
        say(f"{counted(done.taken, 'submission')} delivered")
        if done.refused:
            say(f"{done.refused} refused: {folder / REJECTED} says why")
        return
    found = [_kept(one) for one in SpoolFolder(folder).waiting()]
    rows = [(one.number, one.server, len(one.jobs), _named(one.jobs)) for one in found]
    print_rows(
        found, json, ("number", "server", "jobs", "names"), rows, "nothing waits in this spool"
    )


async def _deliver(spool: Spool, at: Connection, limit: float) -> Delivered:
    """Waits until everything is delivered; raises `Conflict` if that takes too long."""
    service = Service(at.transport(), options=SubmitOptions(spool=spool))
    mine = [one for one in spool.folder.waiting() if one.server == service.place]
    try:
        async with asyncio.timeout(limit):
            await service.open()
            while await spool.is_waiting(service.place):
                await pass_time(ASK_S)
    except TimeoutError:
        why = f"the server {service.place} did not take all submissions within {limit:g} s"
        raise Conflict("not_delivered", f"{why}; `windlass spool` lists those that wait") from None
    finally:
        await service.close()
    ends = [spool.folder.outcome(one.number) for one in mine]
    refused = sum(end is not None and end.refusal is not None for end in ends)
    return Delivered(len(mine) - refused, refused)


def _kept(entry: Waiting) -> Kept:
    try:
        jobs = msgspec.json.decode(entry.request, type=SubmitRequest).jobs
    except UNREADABLE:
        return Kept(entry.number, entry.server, ["cannot be read"])
    return Kept(entry.number, entry.server, [job.name or job.task for job in jobs])


def _named(jobs: list[str]) -> str:
    return ", ".join(jobs[:SHOWN]) + ", …" * (len(jobs) > SHOWN)

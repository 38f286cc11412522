"""`windlass logs` and `windlass stack`: what a job prints, and its current stack."""

from typing import Annotated

from cyclopts import Parameter

from windlass.cli.options.connection import HERE, RECONNECT, Connection, WaitForServer
from windlass.cli.options.flags import Flag, Follow, JobId, Json
from windlass.cli.output.text import BOLD, copy_log, print_json, say
from windlass.messages.files import Stack


def logs(
    job: JobId,
    /,
    *,
    follow: Follow = False,
    tail: Annotated[int | None, Parameter(name=["--tail", "-n"])] = None,
    since: str | None = None,
    attempt: int | None = None,
    timestamps: Flag = False,
    raw: Flag = False,
    reconnect: WaitForServer = RECONNECT,
    at: Connection = HERE,
) -> None:
    """Print a job's log. Control characters are shown as \\x1b and the like; colours stay.

    Parameters
    ----------
    follow
        Keep printing until the job ends.
    tail
        Only this many of the last lines; with --follow, new ones too.
    since
        Only what came since a time, such as 2026-01-02T12:34:56Z, or in the last 10m.
    attempt
        The log of this attempt. Default: the newest.
    timestamps
        Print before each line when the server received it, within 0.1 s of its output.
    raw
        Print the log byte for byte, into a pipe or file.
    """
    with at.client(reconnect) as client:
        handle = client.job(job)
        chunks = handle.logs(follow, attempt=attempt, tail=tail, since=since, timestamps=timestamps)
        copy_log(chunks, raw)


def stack(job: JobId, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Show the current stack of a running Python function; its worker reports it."""
    found = at.call("GET", f"/api/v1/jobs/{job}/stack", Stack)
    if json:
        print_json(found)
        return
    say(f"job {found.job}, attempt {found.attempt} on worker {found.worker}", BOLD)
    for thread in found.threads:
        say(f"\n{thread.name}:")
        for frame in thread.frames:
            say(f"  {frame.file}:{frame.line} in {frame.function}")
            if frame.code:
                say(f"    {frame.code}")

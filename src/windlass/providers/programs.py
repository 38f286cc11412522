"""Runs a provider's program and reads its output."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from windlass.ports.provider import ProviderFault

SHOWN = 300  # characters of its error output


async def run(
    words: Sequence[str],
    *,
    given: str = "",
    env: Mapping[str, str] | None = None,
    accept: Sequence[int] = (0,),
) -> str:
    """Returns the program's output; raises `ProviderFault` for any other exit code."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE if given else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=None if env is None else dict(env),
            start_new_session=True,
        )
    except OSError as error:
        raise ProviderFault(f"cannot run {words[0]}: {error.strerror}") from None
    try:
        _, (out, err) = await asyncio.gather(_feed(process, given), process.communicate())
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode not in accept:
        output = (err or out).decode(errors="replace").strip()[-SHOWN:]
        raise ProviderFault(f"{words[0]} ended with {process.returncode}: {output or 'no message'}")
    return out.decode(errors="replace")


async def _feed(process: asyncio.subprocess.Process, given: str) -> None:
    """Writes the program's input; if it exits without reading it, its exit code decides."""
    if process.stdin is None:
        return
    # Event loops report a closed pipe in different ways.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
        process.stdin.write(given.encode())
        await process.stdin.drain()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
        process.stdin.close()

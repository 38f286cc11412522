"""Runs programs of this machine for what they print, such as their version."""

import asyncio
import os
import shutil
import signal

MAX_S = 10


async def output_of(program: str, *arguments: str) -> str | None:
    """Returns what a program prints; None if it is not there, fails or takes too long."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        process = await asyncio.create_subprocess_exec(
            path, *arguments, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    except OSError:
        return None
    try:
        output, _ = await asyncio.wait_for(process.communicate(), MAX_S)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return output.decode(errors="replace") if process.returncode == 0 else None

"""Reads and writes local files as streams of bytes, off the event loop's thread."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

CHUNK: Final = 256 * 1024


async def read_file(path: Path) -> AsyncIterator[bytes]:
    """Yields the bytes of a file."""
    run = asyncio.get_running_loop().run_in_executor
    file = await run(None, lambda: path.open("rb"))
    try:
        while chunk := await run(None, file.read, CHUNK):
            yield chunk
    finally:
        file.close()


async def write_file(path: Path, chunks: AsyncIterator[bytes]) -> None:
    """Writes a file; removes it again if it was not written completely."""
    run = asyncio.get_running_loop().run_in_executor
    file = await run(None, lambda: path.open("wb"))
    try:
        async for chunk in chunks:
            await run(None, file.write, chunk)
        file.close()
    except BaseException:
        file.close()
        await run(None, partial(path.unlink, missing_ok=True))
        raise


async def size_of(path: Path) -> int:
    """Returns the size of a file in bytes."""
    facts = await asyncio.get_running_loop().run_in_executor(None, path.stat)
    return facts.st_size

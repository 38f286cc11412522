"""Plain `asyncio.create_subprocess_exec`: what `/bin/true` costs without a scheduler."""

import asyncio

from benchmarks.measure import Lap, Watch

PROGRAM = "/bin/true"


def run(jobs: int, at_once: int) -> Lap:
    """Start the program `jobs` times, `at_once` of them side by side."""
    return asyncio.run(_run(jobs, at_once))


async def _run(jobs: int, at_once: int) -> Lap:
    left = iter(range(jobs))
    watch = Watch()

    async def one_after_the_other() -> None:
        for _ in left:
            process = await asyncio.create_subprocess_exec(PROGRAM)
            if await process.wait():
                raise RuntimeError(f"{PROGRAM} failed")

    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
    return watch.lap(jobs)

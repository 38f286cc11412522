"""Section: thousands of idle workers that long-poll one server.

What their syncs cost the server, and how long a job that is submitted among them takes
until one of them has it.
"""

import asyncio
import resource
import time
from statistics import median

from benchmarks.fleet.crowd import Crowd, crowd
from benchmarks.fleet.processes import Server, server
from benchmarks.fleet.usage import cpu_seconds, peak_memory_mb
from benchmarks.options import Options
from benchmarks.report import Row
from windlass.client.client import AsyncClient
from windlass.domain.job.job import JobSpec

NAME = "idle workers"
CPU_PERCENT = 25
START_MS = 50
SPARE_FILES = 500
REST_SECONDS = 0.05


def run(options: Options) -> list[Row]:
    """With 2,000 workers, or 200 for a quick look."""
    count = options.pick(2_000, 200)
    _allow_files(count)
    with server(options.folder / "server") as running:
        return asyncio.run(_measure(running, count, options))


async def _measure(running: Server, count: int, options: Options) -> list[Row]:
    async with crowd(running, count) as members:
        seconds = options.pick(30, 3)
        percent, rate = await _cpu_percent(running.pid, members, seconds)
        starts = await _starts(running, members, options.pick(100, 10))
    section = f"{NAME}, {count:,}"
    slowest = max(starts)
    return [
        Row(section=section, name="server's CPU", value=percent, unit="% of a core",
            target=f"< {CPU_PERCENT}", met=percent < CPU_PERCENT),
        Row(section=section, name="their syncs", value=rate, unit="syncs/s"),
        Row(section=section, name="submit → received, median", value=median(starts), unit="ms",
            target=f"< {START_MS}", met=median(starts) < START_MS),
        Row(section=section, name="submit → received, slowest", value=slowest, unit="ms",
            target=f"< {START_MS}", met=slowest < START_MS),
        Row(section=section, name="server's memory, most", value=peak_memory_mb(running.pid),
            unit="MB"),
    ]  # fmt: skip


async def _cpu_percent(pid: int, members: Crowd, seconds: int) -> tuple[float, float]:
    """The server's share of a core over some seconds, and the syncs in them."""
    before, syncs, began = cpu_seconds(pid), members.syncs, time.monotonic()
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    return (cpu_seconds(pid) - before) / took * 100, (members.syncs - syncs) / took


async def _starts(running: Server, members: Crowd, times: int) -> list[float]:
    """Milliseconds from submitting a job to a worker's having it."""
    found: list[float] = []
    job = JobSpec(task="shell", args={"argv": ["/bin/true"]})
    async with AsyncClient(running.address, running.token) as client:
        await client.submit(job)  # opens the connection
        for _ in range(times):
            await asyncio.sleep(REST_SECONDS)
            began = time.monotonic()
            handle = await client.submit(job)
            found.append((await members.received(handle.id) - began) * 1000)
    return found


def _allow_files(count: int) -> None:
    """A connection is a file, here and, by inheritance, in the server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise RuntimeError(f"expected at least {needed} open files to be allowed, got {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))

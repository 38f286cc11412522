"""The end of `windlass up`: it says what it waits for, and stops at once when asked twice."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from windlass.cli.output.job_table import command_of
from windlass.cli.output.text import say
from windlass.clock import RealClock
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.views import JobFilter
from windlass.providers.local import end_workers, workers_below
from windlass.server.services import ServerServices
from windlass.wire.jobs import Job

REPORT_MS: Final = 1_000
STOP_MS: Final = 5_000  # for a worker that was told to stop at once
FEW: Final = 3
HELD: Final = tuple(
    state.code for state in (State.RUNNING, State.ASSIGNED, State.CANCELING, State.TIMED_OUT)
)
LISTED: Final = 100


async def report_draining(services: ServerServices, workers: Callable[[], Collection[str]]) -> None:
    """Says every second which jobs of these workers have not ended."""
    clock = RealClock()
    while True:
        await clock.sleep_ms(REPORT_MS)
        found = await services.queries.jobs(JobFilter(states=HELD), None, LISTED)
        names = workers()
        say(describe([job for job in found.jobs if job.worker in names]))
        sys.stdout.flush()


def describe(jobs: Collection[Job]) -> str:
    """Returns a line about what has to end before the server may."""
    if not jobs:
        return "waiting for workers to stop; Ctrl-C stops at once"
    shown = [f"{job.id} ({job.name or command_of(job)})" for job in list(jobs)[:FEW]]
    more = f" and {len(jobs) - FEW} more" if len(jobs) > FEW else ""
    plural = "s" if len(jobs) > 1 else ""
    return f"waiting for job{plural} {', '.join(shown)}{more}; Ctrl-C stops at once"


async def end_pool_workers(place: Path, limit_ms: int, at_once: asyncio.Event) -> None:
    """Lets the workers of local pools finish their jobs, or interrupts them when asked to."""
    clock = RealClock()
    ending = asyncio.create_task(end_workers(place, clock, limit_ms))
    if await ended_before(ending, at_once):
        return
    for number in (signal.SIGINT, signal.SIGKILL):
        for pid in workers_below(place):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        done, _ = await asyncio.wait({ending}, timeout=STOP_MS / 1000)
        if done:
            return


async def ended_before(ending: "asyncio.Task[None]", at_once: asyncio.Event) -> bool:
    """Waits for one of both, and returns whether the task has ended."""
    hurry = asyncio.create_task(at_once.wait())
    await asyncio.wait({ending, hurry}, return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()
    return ending.done()

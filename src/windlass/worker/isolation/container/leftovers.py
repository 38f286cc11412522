"""Removes containers left by a killed agent, and the process that podman leaves by itself."""

import asyncio
import os
import shutil
import signal
from pathlib import Path
from typing import Final

import structlog

from windlass.ports.clock import Clock
from windlass.worker.isolation.container.engine import MAX_S, STARTED_BY, EngineAway, run
from windlass.worker.keeper.outside import Ender, find_enders, has_ended
from windlass.worker.keeper.processes import all_processes, environ_of

PAUSE: Final = b"_PODMAN_PAUSE=1"  # in the environment of podman's pause process
# after this long, other processes in podman's namespace are not about to end
ALONE_MS: Final = 5_000
LOOK_MS: Final = 50

log = structlog.get_logger()


async def end_outside(place: Path) -> bool:
    """Ends everything that the folders at this place name; returns whether nothing is left."""
    enders = find_enders(str(place))
    ended = await asyncio.gather(*map(_end, enders)) if enders else ()
    if all(ended):
        shutil.rmtree(place, ignore_errors=True)
        return True
    return False


async def _end(ender: Ender) -> bool:
    try:
        ran = await run(ender.argv, ender.env, MAX_S)
    except EngineAway as error:
        log.error("container_survives", name=Path(ender.folder).name, reason=error.message)
        return False
    if not has_ended(ran.code, ran.errors.encode()):
        log.error("container_survives", name=Path(ender.folder).name, reason=ran.reason)
        return False
    shutil.rmtree(ender.folder, ignore_errors=True)
    return True


async def end_pause(owner: str, clock: Clock) -> None:
    """Ends the process with which rootless podman keeps a user namespace, if nobody needs it.

    It ends only one that a command of this worker started; podman starts another on demand. While
    other containers, or their commands, are in the namespace, it stays.
    """
    mark = os.fsencode(f"{STARTED_BY}={owner}")
    for _ in range(ALONE_MS // LOOK_MS):
        pauses = [seen.pid for seen in all_processes() if {PAUSE, mark} <= {*environ_of(seen.pid)}]
        left = [pid for pid in pauses if _end_if_alone(pid)]
        if not left:
            return
        await clock.sleep_ms(LOOK_MS)


def _end_if_alone(pid: int) -> bool:
    """Ends a process unless others share its user namespace; returns whether it goes on."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        own = _namespace(pid)
        if any(_namespace(seen.pid) == own for seen in all_processes() if seen.pid != pid):
            return True
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(process)
    return False


def _namespace(pid: int) -> str:
    """Returns a process's user namespace; the pid itself if that cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/user")
    except OSError:
        return str(pid)

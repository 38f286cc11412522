"""Ends the containers that an agent has left which was killed."""

import asyncio
import shutil
from pathlib import Path

import structlog

from windlass.worker.isolation.container.engine import LONGEST_S, EngineAway, run
from windlass.worker.keeper.outside import Ender, find_enders, has_ended

log = structlog.get_logger()


async def end_outside(place: Path) -> bool:
    """Ends everything that the folders at this place name; whether nothing is left."""
    enders = find_enders(str(place))
    ended = await asyncio.gather(*map(_end, enders)) if enders else ()
    if all(ended):
        shutil.rmtree(place, ignore_errors=True)
        return True
    return False


async def _end(ender: Ender) -> bool:
    try:
        ran = await run(ender.argv, ender.env, LONGEST_S)
    except EngineAway as error:
        log.error("container_survives", name=Path(ender.folder).name, reason=error.message)
        return False
    if not has_ended(ran.code, ran.errors.encode()):
        log.error("container_survives", name=Path(ender.folder).name, reason=ran.reason)
        return False
    shutil.rmtree(ender.folder, ignore_errors=True)
    return True

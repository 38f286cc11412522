"""`windlass worker --reload`: restarts the worker when the code of its functions changes.

The agent itself has imported modules too, and a module cannot be taken out of a Python process. So
the whole worker lets running jobs finish and starts again in the same process, with the same
command line.
"""

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import structlog

from windlass.cli.commands.start.hidden_from_jobs import HELD, PREFIX, RELOADED, hold, hold_text
from windlass.clock import RealClock
from windlass.executors.python.code_store import Stamp, stamp_of
from windlass.worker.agent.agent import Agent

LOOK_MS: Final = 500
WATCHED: Final = 10_000  # files, while the code cannot be imported
_OWN: Final = "windlass"

log = structlog.get_logger()


class Reload:
    """Watches the files of a worker's functions, and drains the worker when one changes."""

    def __init__(self, agent: Agent) -> None:
        self.changed = False
        self._agent = agent
        self._seen: dict[str, Stamp] = {}

    async def watch(self) -> None:
        """Looks at the files now and then, until one has changed."""
        clock = RealClock()
        while not self.changed:
            self.look()
            await clock.sleep_ms(LOOK_MS)

    def look(self) -> None:
        """Drains the worker if a file is not as it was."""
        file = self._agent.machine.changed_file() or self._find_changed()
        if file is not None and not self.changed:
            self.changed = True
            log.info("code_changed", file=file, message="restarting after running jobs")
            self._agent.drain()

    def _find_changed(self) -> str | None:
        """Returns a module that this process or a job imported, or tried to, and that changed."""
        files: dict[str, str | None] = {file: file for file in _own_files()}
        for name, file in (files | self._agent.machine.missing_files()).items():
            stamp = None if file is None else stamp_of(file)
            if self._seen.setdefault(name, stamp) != stamp:
                return name
        return None


def _own_files() -> Iterable[str]:
    """Returns the files of the modules that this process has imported, but not its libraries."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name.partition(".")[0] not in (_OWN, *sys.stdlib_module_names):
            yield file


def wait_for_change(folder: Path) -> None:
    """Waits until a Python file in the folder has changed, because the code cannot be imported."""

    async def wait() -> None:
        clock, seen = RealClock(), _sources(folder)
        while _sources(folder) == seen:
            await clock.sleep_ms(LOOK_MS)

    asyncio.run(wait())


def _sources(folder: Path) -> dict[str, Stamp]:
    return {str(file): stamp_of(str(file)) for file in islice(folder.rglob("*.py"), WATCHED)}


def end_to_start_again() -> None:
    """Ends this worker of `windlass up`, which starts it again with a code of its own."""
    raise SystemExit(RELOADED)


async def run_watched(agent: Agent, reloads: bool) -> bool:
    """Runs a worker; returns whether it stopped because its code has changed."""
    if not reloads:
        await agent.run()
        return False
    reload = Reload(agent)
    watching = asyncio.get_running_loop().create_task(reload.watch())
    try:
        await agent.run()
    finally:
        watching.cancel()
    return reload.changed


def start_again(held: Mapping[str, str], store: str | None) -> None:
    """Replaces this process by a new one of the same command line, with the same secrets."""
    words = [
        f"{PREFIX}{hold_text(store)}" if store is not None and word.startswith(PREFIX) else word
        for word in sys.orig_argv[1:]
    ]
    secrets = hold(held)
    os.set_inheritable(secrets, True)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *words], {**os.environ, HELD: str(secrets)})  # nosec B606

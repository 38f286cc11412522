"""Where an engine works: folders of its own, and programs run in them within bounds."""

import asyncio
import os
import shutil
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from windlass.fuzzing.engines.engine import Target
from windlass.fuzzing.processes.runner import ExitStatus, Limits, run, tail

OUTPUT_EVERY_MS: Final = 1_000


class ToolRunner:
    """The scratch folder of one engine, shared by all that it runs at the same time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._number = 0

    def path(self, name: str) -> Path:
        """A name that nobody has used."""
        self._number += 1
        return self._target.scratch / f"{name}-{self._number}"

    def folder(self, name: str) -> Path:
        """A new folder."""
        folder = self.path(name)
        folder.mkdir()
        return folder

    async def run(
        self,
        argv: Sequence[str],
        limits: Limits,
        variables: Mapping[str, str] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> tuple[ExitStatus, str]:
        """Run a program in a folder that goes with it; how it ended, and the last it said.

        `heard` gets what it said last every few seconds, for programs that run for hours.
        """
        folder = self.folder("run")
        log = folder / "log"
        env = {**os.environ, **(variables or {}), **self._target.variables}
        clock = self._target.clock
        last = clock.now_ms()

        def on_poll() -> None:
            nonlocal last
            if on_output is not None and clock.now_ms() - last >= OUTPUT_EVERY_MS:
                last = clock.now_ms()
                on_output(tail(log))

        try:
            ended = await run(
                argv, cwd=folder, log=log, limits=limits, clock=clock, env=env, on_poll=on_poll
            )
            return ended, tail(log)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


async def run_concurrently(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all of it at the same time; the first that fails ends the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


def last_line(output: str) -> str:
    """The last line a program said, for an error."""
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def files_in(folder: Path) -> list[Path]:
    """The files of a folder, in order of their names."""
    return sorted(path for path in folder.iterdir() if path.is_file())

"""Runs an engine's programs within limits, in folders of its own."""

import asyncio
import shutil
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from windlass_fuzz.engines.engine import Target
from windlass_fuzz.engines.input_words import ProgramText
from windlass_fuzz.engines.sanitizers import with_stacks
from windlass_fuzz.processes.environment import inherited_environment
from windlass_fuzz.processes.runner import ExitStatus, Limits, head_and_tail, run, tail

OUTPUT_EVERY_MS: Final = 1_000


class TargetRun(NamedTuple):
    """How a target ended, everything it printed, and its error output alone."""

    ended: ExitStatus
    output: str
    errors: str


class ToolRunner:
    """The scratch folder of one engine, shared by everything it runs at the same time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._number = 0
        self.program = ProgramText(target.binaries)

    def path(self, name: str) -> Path:
        """Returns an unused path."""
        self._number += 1
        return self._target.scratch / f"{name}-{self._number}"

    def folder(self, name: str) -> Path:
        """Creates a new folder."""
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
        """Runs a program in a temporary folder; returns its exit status and latest output.

        `on_output` gets the latest output every second, for programs that run for hours.
        """
        folder = self.folder("run")
        log = folder / "log"
        env = {**inherited_environment(), **(variables or {}), **self._target.variables}
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

    async def run_target(
        self, argv: Sequence[str], limits: Limits, variables: Mapping[str, str] | None = None
    ) -> TargetRun:
        """Runs a target once, with its error output separate from the rest."""
        folder = self.folder("run")
        log, errors = folder / "log", folder / "errors"
        env = with_stacks(
            {**inherited_environment(), **(variables or {}), **self._target.variables}
        )
        try:
            ended = await run(
                argv, cwd=folder, log=log, errors=errors, limits=limits,
                clock=self._target.clock, env=env,
            )  # fmt: skip
            said = head_and_tail(errors)
            return TargetRun(ended, head_and_tail(log) + said, said)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


async def run_concurrently(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Runs all coroutines at once; the first failure cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


def last_line(output: str) -> str:
    """Returns the last line of a program's output, for an error message."""
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it printed nothing"


def files_in(folder: Path) -> list[Path]:
    """Returns the files of a folder, sorted by name."""
    return sorted(path for path in folder.iterdir() if path.is_file())

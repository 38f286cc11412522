"""One attempt in the calling thread, for tests of programs: its log, its files, its programs."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import msgspec

from windlass.domain.matching.isolation import WEAKEST
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.executors.shell import ShellExecutor
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.ports.clock import Clock
from windlass.ports.executor import Exit, Limits, Result
from windlass.ports.gateway import Holder
from windlass.worker.agent.direct import DirectGateway
from windlass.worker.agent.environment import without_own
from windlass.worker.attempt.context import AgentContext
from windlass.worker.attempt.files import Files
from windlass.worker.attempt.records import result_of
from windlass.worker.attempt.secrets import Mask
from windlass.worker.isolation.modes import Modes

PIECE: Final = 262_144  # bytes of a log in one call


class Place(NamedTuple):
    """What all attempts of the worker share."""

    gateway: DirectGateway
    clock: Clock
    result_limit: int
    log_limit: int


class VirtualAttempt:
    """What a running job needs from its agent; the rest of a context is not needed here."""

    isolation = WEAKEST

    def __init__(
        self, place: Place, holder: Holder, folder: Path, secrets: Mapping[str, str]
    ) -> None:
        self.scratch = folder
        self.args: Any = None
        self.stopping = asyncio.Event()
        self.mask = Mask(secrets.values()) if secrets else None
        self.secrets = dict(secrets)
        self._place = place
        self._holder = holder
        self._asked = 0
        self._log = bytearray()
        context = _FilesContext(
            place.gateway, place.clock, _OneFolder(folder), Modes(), place.result_limit
        )
        # It has what files ask of an agent.
        self._files = Files(cast(AgentContext, context), holder)
        self.fetch = self._files.fetch
        self.fill = self._files.fill

    # For functions

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        """Submits jobs of the function."""
        self._asked += 1
        if request.key is None:
            key = f"{self._holder.job}-{self._holder.attempt}-{self._asked}"
            request = msgspec.structs.replace(request, key=key)
        return await self._place.gateway.submit(self._holder, request)

    async def step(self, request: StepRequest) -> StepReply:
        """Stores a step of the function, or begins what it waits for."""
        return await self._place.gateway.step(self._holder, request)

    def alive(self) -> None:
        """Does nothing: there is no idle time here."""

    # For programs

    async def run_program(self, args: Any) -> Result:
        """Runs a program as a shell job does, without its limits."""
        self.args = args
        try:
            return await ShellExecutor().run(cast(Any, self))
        except (InvalidInput, OSError) as error:
            return result_of(error, ran=False)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        stdin: bytes | None,
        limits: Limits | None,
    ) -> "_Ended":
        """Runs a program to its end; its output goes to the log."""
        del limits
        everything = {**without_own(os.environ), **env, **self.secrets}
        process = await asyncio.create_subprocess_exec(
            *argv, env=everything, cwd=self.scratch, stdin=PIPE, stdout=PIPE, stderr=STDOUT
        )
        output, _ = await process.communicate(stdin)
        self.log(output)
        code = process.returncode or 0
        return _Ended(Exit(code) if code >= 0 else Exit(None, -code))

    async def upload(self, patterns: Sequence[str]) -> None:
        """Keeps files as artifacts."""
        await self._files.upload(patterns, self._note_missing)

    def _note_missing(self, pattern: str) -> None:
        self.log(f"no file matches {pattern}\n".encode())

    # Its log and its result

    def log(self, data: bytes) -> None:
        """Adds to its log."""
        self._log += data

    @contextmanager
    def printing(self) -> Iterator[None]:
        """Copies printed output to the log; pytest captures it too."""
        out, err = (_Printing(stream, self.log) for stream in (sys.stdout, sys.stderr))
        with redirect_stdout(cast(Any, out)), redirect_stderr(cast(Any, err)):
            yield

    async def end(self, result: Result) -> Result:
        """Writes the log; returns the result with large parts and files of it as artifacts."""
        try:
            await self._write_log()
            if result.leaves_more(self._place.result_limit):
                return await self._files.keep(result, self.mask)
        except InvalidInput as error:
            return result_of(error, ran=True)
        except Conflict as error:
            if error.code != "lease_lost":
                raise
        return result

    async def _write_log(self) -> None:
        data = bytes(self._log)
        if self.mask is not None:
            masker = self.mask.stream()
            data = masker.feed(data) + masker.flush()
        data = data[: self._place.log_limit or len(data)]
        if not data:
            return
        for start in range(0, len(data), PIECE):
            piece = data[start : start + PIECE]
            await self._place.gateway.append_log(self._holder, start, piece)
        await self._place.gateway.end_log(self._holder, len(data), "committed")


class _FilesContext(NamedTuple):
    gateway: DirectGateway
    clock: Clock
    scratch: "_OneFolder"
    isolation: Modes
    result_limit: int


class _OneFolder:
    """Implements what files ask of `Scratch`: a folder that its owner removes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self) -> Path:
        return self._folder


class _Ended:
    """A process that has ended."""

    def __init__(self, end: Exit) -> None:
        self._end = end

    async def wait(self) -> Exit:
        return self._end


class _Printing:
    """A stream that copies output to the log of the running job, not of one that waits for it."""

    def __init__(self, stream: Any, log: Callable[[bytes], None]) -> None:
        self.stream: Any = stream.stream if isinstance(stream, _Printing) else stream
        self._log = log

    def write(self, text: str) -> int:
        self._log(text.encode("utf-8", "replace"))
        return int(self.stream.write(text))

    def writelines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

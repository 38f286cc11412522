"""The builder: takes a commit, makes both builds of it, uploads them, and says so.

The commit leaves the queue only when all of that is done, or has failed for a reason of its
own. What is the machine's fault (no disk, no repository) gives the commit back instead.
"""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import InvalidInput, NotFound, WindlassError
from windlass.fuzzing.board import Board
from windlass.fuzzing.building import BuildFailed, Workshop
from windlass.fuzzing.checkout import GitFailed, Mirror
from windlass.fuzzing.holding import LEASE_MS, while_held
from windlass.fuzzing.layout import KINDS, Kind, build_key, build_log_key
from windlass.fuzzing.leases import Held
from windlass.fuzzing.processes import tail
from windlass.fuzzing.solver import Solver
from windlass.fuzzing.steps_build import BuildSteps

LOG_KEPT: Final = 4 * 1024 * 1024
SAID: Final = 2_000  # characters of a log that an error shows


class BuildReport(msgspec.Struct, kw_only=True):
    """What a run of the builder did; `given_up` are commits whose builds crashed too often."""

    outcome: Literal["built", "failed", "nothing"]
    commit: str | None = None
    why: str = ""
    took_ms: int = 0
    log: str = ""
    given_up: list[str] = []


@dataclass(slots=True)
class Builder:
    """One run for one commit."""

    solver: Solver
    board: Board
    work: Path
    told: Callable[[str], None] = lambda _: None
    lease_ms: int = LEASE_MS

    async def run_once(self, commit: str | None = None) -> BuildReport:
        """Build the next commit of the queue, or this one."""
        steps = BuildSteps(self.board, self.solver.build.tries)
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        if commit is not None:
            await mirror.fetch()
            commit = await mirror.require(commit)
            await steps.add(commit)
        took = await steps.take(self.lease_ms, commit)
        if took.held is None:
            why = "somebody else builds it" if commit else "nothing waits in the queue"
            return BuildReport(outcome="nothing", why=why, given_up=list(took.given_up))
        report = await self._build(steps, took.held, mirror)
        report.given_up = list(took.given_up)
        return report

    async def _build(self, steps: BuildSteps, held: Held, mirror: Mirror) -> BuildReport:
        began = self.board.now_ms()
        log = self.work / "build.log"
        self.work.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        making = self._make(held.commit, mirror, log)
        why = ""
        try:
            await while_held(steps, held, self.lease_ms, self.board.around.clock, making)
        except (BuildFailed, GitFailed, InvalidInput, NotFound) as error:
            why = str(error)
        except BaseException:
            # Not the commit's fault: another run takes it at once, and nothing is counted.
            await asyncio.shield(steps.release(held))
            raise
        await self._finish(steps, held, log, why)
        return BuildReport(
            outcome="failed" if why else "built", commit=held.commit, why=why,
            took_ms=self.board.now_ms() - began, log=build_log_key(self.solver.name, held.commit),
        )  # fmt: skip

    async def make(self, commit: str, kinds: Sequence[Kind]) -> None:
        """Build and upload one commit, without a look at the state; raises what went wrong."""
        log = self.work / "build.log"
        log.write_bytes(b"")
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        await mirror.fetch()
        full = await mirror.require(commit)
        try:
            await self._make(full, mirror, log, kinds)
        except BuildFailed as error:
            await self._keep_log(full, log, str(error))
            raise WindlassError(f"{error}; it said: {tail(log, SAID).strip()}") from None

    async def _make(
        self, commit: str, mirror: Mirror, log: Path, kinds: Sequence[Kind] = KINDS
    ) -> None:
        """Both builds, then both uploads: one without the other is of no use."""
        await mirror.fetch()
        workshop = Workshop(self.solver, mirror, self.work, self.board.around.clock)
        archives = {}
        for kind in kinds:
            self.told(f"{commit[:12]}: {kind} build")
            archives[kind] = await workshop.build(commit, kind, log)
        for kind, archive in archives.items():
            self.told(f"{commit[:12]}: uploading the {kind} build")
            await self.board.bucket.put(build_key(self.solver.name, kind, commit), archive)
            archive.unlink()
        shutil.rmtree(self.work / "checkout", ignore_errors=True)

    async def _finish(self, steps: BuildSteps, held: Held, log: Path, why: str) -> None:
        """The log first: a commit in `failed` without one could not be explained."""
        await self._keep_log(held.commit, log, why)
        if why:
            await steps.mark_failed(held.commit, held.token)
        else:
            await steps.mark_built(held.commit, held.token)

    async def _keep_log(self, commit: str, log: Path, why: str) -> None:
        said = tail(log, LOG_KEPT) + (f"\n{why}\n" if why else "")
        key = build_log_key(self.solver.name, commit)
        await self.board.bucket.put(key, said.encode(errors="replace"))

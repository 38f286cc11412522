"""The builder: takes a commit, makes both builds, uploads them and marks the commit.

The commit leaves the queue only when all of that is done, or the build itself has failed. If
the machine is at fault (disk, repository), the builder releases the commit instead.
"""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import InvalidInput, NotFound, WindlassError
from windlass.fuzzing.alarms.sender import alarm_of, send_alarm
from windlass.fuzzing.buckets.layout import KINDS, Kind, build_key, build_log_key
from windlass.fuzzing.builds.build_runner import BuildFailed, BuildRunner
from windlass.fuzzing.config.solver_file import Solver
from windlass.fuzzing.processes.runner import tail
from windlass.fuzzing.roles.build_steps import BuildSteps
from windlass.fuzzing.roles.run_health import alarm_about, end_alarm, raise_alarm
from windlass.fuzzing.sources.mirror import GitFailed, Mirror
from windlass.fuzzing.state.lease_keeper import LEASE_MS, while_held
from windlass.fuzzing.state.leases import HeldLease
from windlass.fuzzing.state.pipeline import Pipeline

LOG_KEPT: Final = 4 * 1024 * 1024
OUTPUT_CHARS: Final = 2_000  # how much of a log an error shows


class BuildReport(msgspec.Struct, kw_only=True):
    """The result of a builder's run; `given_up` lists commits whose builds crashed too often.

    `alarm` says what is wrong with a build that was made.
    """

    outcome: Literal["built", "failed", "nothing"]
    commit: str | None = None
    why: str = ""
    took_ms: int = 0
    log: str = ""
    alarm: str = ""
    given_up: list[str] = []


@dataclass(slots=True)
class Builder:
    """One run for one commit."""

    solver: Solver
    pipeline: Pipeline
    work: Path
    notify: Callable[[str], None] = lambda _: None
    lease_ms: int = LEASE_MS

    async def run_once(self, commit: str | None = None) -> BuildReport:
        """Builds the given commit, or the next one in the queue."""
        steps = BuildSteps(self.pipeline, self.solver.build.tries)
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        if commit is not None:
            await mirror.fetch()
            commit = await mirror.require(commit)
            await steps.add(commit)
        taken = await steps.take(self.lease_ms, commit)
        if taken.held is None:
            why = "another builder is building it" if commit else "the queue is empty"
            return BuildReport(outcome="nothing", why=why, given_up=list(taken.given_up))
        report = await self._build(steps, taken.held, mirror)
        report.given_up = list(taken.given_up)
        return report

    async def _build(self, steps: BuildSteps, held: HeldLease, mirror: Mirror) -> BuildReport:
        began = self.pipeline.now_ms()
        log = self.work / "build.log"
        self.work.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        making = self._make(held.commit, mirror, log)
        why = ""
        try:
            await while_held(steps, held, self.lease_ms, self.pipeline.runtime.clock, making)
        except (BuildFailed, GitFailed, InvalidInput, NotFound) as error:
            why = str(error)
        except BaseException:
            # Not the commit's fault: another run can take it at once, and this try is not counted.
            await asyncio.shield(steps.release(held))
            raise
        await self._finish(steps, held, log, why)
        alarm = "" if why else await self._try_out(held.commit, mirror)
        return BuildReport(
            outcome="failed" if why else "built", commit=held.commit, why=why, alarm=alarm,
            took_ms=self.pipeline.now_ms() - began,
            log=build_log_key(self.solver.name, held.commit),
        )  # fmt: skip

    async def _try_out(self, commit: str, mirror: Mirror) -> str:
        """Runs some tests with a new build; a build that answers none of them raises an alarm.

        The commit stays built: only fuzzing shows whether the build is of no use.
        """
        try:
            alarm = await alarm_about(
                commit, self.solver, self.pipeline, mirror, self.work / "trial"
            )
        except WindlassError as error:
            self.notify(f"{commit[:12]}: the build was not tried out: {error}")
            return ""
        if alarm:
            self.notify(f"{commit[:12]}: {alarm}")
            await raise_alarm(self.pipeline, commit, alarm)
            said = alarm_of(self.solver.name, commit, alarm, 0, self.pipeline.now_ms())
            await send_alarm(said, self.solver.alarms, self.pipeline.runtime.clock, self.notify)
        else:
            await end_alarm(self.pipeline, commit)
        return alarm

    async def make(self, commit: str, kinds: Sequence[Kind]) -> Mirror:
        """Builds and uploads one commit without changing the state; raises if anything fails."""
        log = self.work / "build.log"
        log.write_bytes(b"")
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        await mirror.fetch()
        full = await mirror.require(commit)
        try:
            await self._make(full, mirror, log, kinds)
        except BuildFailed as error:
            await self._keep_log(full, log, str(error))
            raise WindlassError(f"{error}; output: {tail(log, OUTPUT_CHARS).strip()}") from None
        return mirror

    async def make_and_try(self, commit: str, kinds: Sequence[Kind]) -> str:
        """Does that, and returns what is wrong with a new production build."""
        mirror = await self.make(commit, kinds)
        full = await mirror.require(commit)
        return await self._try_out(full, mirror) if "production" in kinds else ""

    async def _make(
        self, commit: str, mirror: Mirror, log: Path, kinds: Sequence[Kind] = KINDS
    ) -> None:
        """Makes both builds, then uploads both: one without the other is useless."""
        await mirror.fetch()
        runner = BuildRunner(self.solver, mirror, self.work, self.pipeline.runtime.clock)
        archives = {}
        for kind in kinds:
            self.notify(f"{commit[:12]}: {kind} build")
            archives[kind] = await runner.build(commit, kind, log)
        for kind, archive in archives.items():
            self.notify(f"{commit[:12]}: uploading the {kind} build")
            await self.pipeline.bucket.put(build_key(self.solver.name, kind, commit), archive)
            archive.unlink()
        shutil.rmtree(self.work / "checkout", ignore_errors=True)

    async def _finish(self, steps: BuildSteps, held: HeldLease, log: Path, why: str) -> None:
        """Uploads the log first, so that every commit in `failed` has one."""
        await self._keep_log(held.commit, log, why)
        if why:
            await steps.mark_failed(held.commit, held.token)
        else:
            await steps.mark_built(held.commit, held.token)

    async def _keep_log(self, commit: str, log: Path, why: str) -> None:
        text = tail(log, LOG_KEPT) + (f"\n{why}\n" if why else "")
        key = build_log_key(self.solver.name, commit)
        await self.pipeline.bucket.put(key, text.encode(errors="replace"))

"""The builder: takes a commit, makes its builds, uploads them and marks the commit.

With a matrix there is a build for each combination; a failed one is red in `status`.

The commit leaves the queue only when all of that is done, or the build itself has failed. If the
machine is at fault (disk, repository), the builder releases the commit instead.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import InvalidInput, NotFound, WindlassError
from windlass_fuzz.alarms.outbox import repeat_alarms, send_alarm
from windlass_fuzz.alarms.sender import alarm_of
from windlass_fuzz.buckets.layout import KINDS, Kind, build_key, build_log_key
from windlass_fuzz.builds.build_runner import BuildFailed, BuildRunner, errors_in
from windlass_fuzz.config.combinations import Combination, combinations_of, for_coverage
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.processes.runner import tail
from windlass_fuzz.roles.build_steps import BuildSteps
from windlass_fuzz.roles.run_health import (
    alarm_about,
    end_alarm,
    raise_alarm,
    record_builds,
)
from windlass_fuzz.sources.mirror import GitFailed, Mirror, SubmoduleUnreachable
from windlass_fuzz.state.built_combinations import BuiltCombinations, write_built
from windlass_fuzz.state.lease_keeper import LEASE_MS, while_held
from windlass_fuzz.state.leases import HeldLease, process_name
from windlass_fuzz.state.pipeline import Pipeline

LOG_KEPT: Final = 4 * 1024 * 1024
OUTPUT_CHARS: Final = 4_000  # how much of a log an error shows


class CannotBuild(WindlassError):
    """A commit cannot be built: how its build ended, and the end of its output."""

    def __init__(self, why: str, output: str) -> None:
        super().__init__(f"{why}; output: {output}")
        self.why = why
        self.output = output


class BuildReport(msgspec.Struct, kw_only=True):
    """The result of a builder's run; `given_up` lists commits whose builds crashed too often.

    `alarm` says what is wrong with a build that was made. `broken` are combinations of the matrix
    that could not be built, and why. `output` is what a failed build printed about its first error.
    """

    outcome: Literal["built", "failed", "nothing"]
    commit: str | None = None
    why: str = ""
    took_ms: int = 0
    log: str = ""
    alarm: str = ""
    output: str = ""
    broken: dict[str, str] = {}
    given_up: list[str] = []


@dataclass(slots=True)
class Builder:
    """One run for one commit."""

    solver: Solver
    pipeline: Pipeline
    work: Path
    notify: Callable[[str], None] = lambda _: None
    lease_ms: int = LEASE_MS
    says_keys: bool = True  # keys of the objects that it stores

    async def run_once(self, commit: str | None = None) -> BuildReport:
        """Builds the given commit, or the next one in the queue."""
        await repeat_alarms(self.pipeline, self.solver.alarms, self.notify)
        own = process_name(os.getpid())
        steps = BuildSteps(self.pipeline, self.solver.build.tries, own)
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        if commit is not None:
            await mirror.fetch()
            commit = await mirror.resolve(commit)
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
        except SubmoduleUnreachable:
            await asyncio.shield(steps.postpone(held))
            raise
        except BaseException:
            # Not the commit's fault: another run can take it at once, and this try is not counted.
            await asyncio.shield(steps.release(held))
            raise
        await self._finish(steps, held, log, why)
        made = BuiltCombinations() if why else await self._made_of(held.commit)
        alarm = "" if why else await self._try_all(held.commit, mirror, made.built)
        return BuildReport(
            outcome="failed" if why else "built", commit=held.commit, why=why, alarm=alarm,
            broken=dict(made.failed), output=_printed(log) if why else "",
            took_ms=self.pipeline.now_ms() - began,
            log=build_log_key(self.solver.name, held.commit),
        )  # fmt: skip

    async def _try_all(self, commit: str, mirror: Mirror, built: Collection[str]) -> str:
        """Tries out every new build; returns what is wrong with them."""
        found = {
            one.name: await self._try_out(commit, mirror, one)
            for one in combinations_of(self.solver)
            if not one.name or one.name in built
        }
        return "; ".join(f"{name}: {why}" if name else why for name, why in found.items() if why)

    async def _try_out(self, commit: str, mirror: Mirror, one: Combination) -> str:
        """Runs some tests with a new build; a build that answers none of them raises an alarm.

        The commit stays built: only fuzzing shows whether the build is useless.
        """
        try:
            alarm = await alarm_about(commit, one, self.pipeline, mirror, self.work / "trial")
        except WindlassError as error:
            self.notify(f"{commit[:12]}: the build was not tried out: {error}")
            return ""
        if alarm:
            self.notify(f"{_title(commit, one.name)}: {alarm}")
            await raise_alarm(self.pipeline, commit, alarm, one.name)
            why = f"{one.name}: {alarm}" if one.name else alarm
            said = alarm_of(self.solver.name, commit, why, 0, self.pipeline.now_ms())
            await send_alarm(self.pipeline, said, self.solver.alarms, self.notify)
        elif not one.name:
            await end_alarm(self.pipeline, commit)
        return alarm

    async def make(self, commit: str, kinds: Sequence[Kind]) -> Mirror:
        """Builds and uploads one commit without changing the state; raises if anything fails."""
        log = self.work / "build.log"
        log.write_bytes(b"")
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        await mirror.fetch()
        full = await mirror.resolve(commit)
        try:
            await self._make(full, mirror, log, kinds)
        except BuildFailed as error:
            await self._keep_log(full, log, str(error))
            raise CannotBuild(str(error), _printed(log)) from None
        return mirror

    async def make_and_try(self, commit: str, kinds: Sequence[Kind]) -> str:
        """Does the same, and returns what is wrong with a new production build."""
        mirror = await self.make(commit, kinds)
        full = await mirror.require(commit)
        if "production" not in kinds:
            return ""
        return await self._try_all(full, mirror, (await self._made_of(full)).built)

    async def _made_of(self, commit: str) -> BuiltCombinations:
        """Returns which combinations of a matrix are built, and why others are not."""
        return await self.pipeline.built(commit) if self.pipeline.matrix else BuiltCombinations()

    async def _make(
        self, commit: str, mirror: Mirror, log: Path, kinds: Sequence[Kind] = KINDS
    ) -> None:
        """Makes both builds, then uploads both: one without the other is useless."""
        await mirror.fetch()
        archives: dict[str, Path] = {}
        made = BuiltCombinations()
        for kind in kinds:
            if kind == "coverage":
                self.notify(f"{commit[:12]}: coverage build")
                runner = self._runner(for_coverage(self.solver), mirror)
                key = build_key(self.solver.name, kind, commit)
                archives[key] = await runner.build(commit, kind, log)
            else:
                made = await self._make_production(commit, mirror, log, archives)
        for key, archive in archives.items():
            if self.says_keys:
                self.notify(f"{commit[:12]}: storing {key}")
            await self.pipeline.bucket.put(key, archive)
            archive.unlink()
        if made.built:
            await write_built(self.pipeline.bucket, self.solver.name, commit, made)
            await record_builds(self.pipeline, commit, made)
        shutil.rmtree(self.work / "checkout", ignore_errors=True)

    async def _make_production(
        self, commit: str, mirror: Mirror, log: Path, archives: dict[str, Path]
    ) -> BuiltCombinations:
        """Makes the builds of all combinations; returns nothing without a matrix.

        Without a matrix the one build must not fail; with one, at least one must succeed.
        """
        built: list[str] = []
        failed: dict[str, str] = {}
        for one in combinations_of(self.solver):
            self.notify(f"{_title(commit, one.name)}: production build")
            key = build_key(self.solver.name, "production", commit, one.name)
            runner = self._runner(one.solver, mirror)
            try:
                archives[key] = await runner.build(commit, "production", log, one.name)
                built += [one.name] if one.name else []
            except (BuildFailed, InvalidInput) as error:
                if not one.name:
                    raise
                failed[one.name] = str(error)
                self.notify(f"{_title(commit, one.name)}: {error}")
        if failed and not built:
            first, why = next(iter(failed.items()))
            raise BuildFailed(f"no combination can be built; {first}: {why}")
        return BuiltCombinations(built=tuple(built), failed=failed)

    def _runner(self, solver: Solver, mirror: Mirror) -> BuildRunner:
        return BuildRunner(solver, mirror, self.work, self.pipeline.runtime.clock)

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


def _printed(log: Path) -> str:
    """Returns a build's first error, and the end of what it printed."""
    return errors_in(tail(log, LOG_KEPT), OUTPUT_CHARS)


def _title(commit: str, combination: str) -> str:
    return f"{commit[:12]} {combination}" if combination else commit[:12]

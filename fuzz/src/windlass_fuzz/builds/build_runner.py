"""Makes one build of a commit with the solver's own script and packs the result."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windlass.ports.clock import Clock
from windlass_fuzz.buckets.layout import Kind
from windlass_fuzz.builds.archive import BuildMetadata, pack
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.processes.disk_space import DiskFull, report_disk_full
from windlass_fuzz.processes.environment import inherited_environment
from windlass_fuzz.processes.runner import Limits, run
from windlass_fuzz.sources.mirror import Mirror

MIN_SPACE: Final = 16 * 1024 * 1024


_ERROR: Final = re.compile(
    r"^.*(?:\berror:|\bfatal:|\bundefined reference\b)", re.IGNORECASE | re.MULTILINE
)


class BuildFailed(Exception):
    """The build script failed; the message says how."""


@dataclass(frozen=True, slots=True)
class BuildRunner:
    """Makes the builds of a solver on this machine."""

    solver: Solver
    mirror: Mirror
    folder: Path
    clock: Clock

    async def build(self, commit: str, kind: Kind, log: Path, combination: str = "") -> Path:
        """Makes a build and returns its archive; appends the script's output to `log`."""
        sources = self.folder / "checkout" / kind
        which = f"{kind}-{combination}" if combination else kind
        with report_disk_full(self.folder):
            await self.mirror.checkout(commit, sources)
            _append(log, f"== {which} build of {commit}\n")
        await self._run_script(commit, kind, sources, log)
        archive = self.folder / "archives" / f"{commit}-{which}.tar.gz"
        archive.parent.mkdir(parents=True, exist_ok=True)
        metadata = BuildMetadata(
            commit=commit, kind=kind, root=str(sources), built_at_ms=self.clock.now_ms()
        )
        pack(sources, self.solver.binaries, metadata, archive)
        return archive

    async def _run_script(self, commit: str, kind: Kind, sources: Path, log: Path) -> None:
        build = self.solver.build
        argv = build.production if kind == "production" else build.coverage
        limits = Limits(build.timeout_ms, memory=build.memory_bytes, output=0)
        ended = await run(
            argv, cwd=sources, log=log, limits=limits, clock=self.clock,
            env=self._environment(commit, kind),
        )  # fmt: skip
        if ended.ok:
            return
        how = f"the {kind} build {ended.describe(limits)}"
        if shutil.disk_usage(self.folder).free < MIN_SPACE:
            raise DiskFull(f"{how}, and no disk space is left at {self.folder}; free some")
        raise BuildFailed(how)

    def _environment(self, commit: str, kind: Kind) -> Mapping[str, str]:
        known = {"WINDLASS_FUZZ_COMMIT": commit, "WINDLASS_FUZZ_KIND": kind}
        return {**inherited_environment(), **self.solver.build.env, **known}


def errors_in(output: str, limit: int) -> str:
    """Returns a build's first error and the end of its output, about `limit` characters.

    Most output after the first error consists of its consequences.
    """
    output = output.strip()
    if len(output) <= limit:
        return output
    half = limit // 2
    end = len(output) - half
    found = _ERROR.search(output, 0, end)
    if found is None:
        return output[-limit:]
    until = min(found.start() + half, end)
    left = f"\n[{end - until} characters omitted]\n" if until < end else ""
    return f"{output[found.start() : until]}{left}{output[end:]}"


def _append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)

"""Runs gcov and LLVM's tools on the output of programs of a coverage build.

A gcov build includes its `.gcno` files; its programs write their counters into a folder of ours,
wherever the build was made. Programs of an LLVM build write profiles. The files that a run writes
show which of the two it is.
"""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import WindlassError
from windlass.ports.clock import Clock
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.processes.runner import Limits, run, tail

TOOL_MS: Final = 600_000
NAMES_AT_ONCE: Final = 1_000
PER_PROCESS: Final = "%p"
POOLED: Final = "%4m"  # four files, into which all processes of a program merge their counts


@dataclass(frozen=True, slots=True)
class CoverageBuild:
    """A coverage build on this machine; `root` is where its sources were when it was made."""

    binaries: Path
    root: Path
    binary: str

    @property
    def program(self) -> Path:
        """Returns the program that llvm-cov reads."""
        return self.binaries / self.binary


@dataclass(frozen=True, slots=True)
class CoverageTools:
    """The tools for one build; each run may take `timeout_ms`."""

    build: CoverageBuild
    clock: Clock
    timeout_ms: int = TOOL_MS

    def variables(self, folder: Path, profile: str = PER_PROCESS) -> dict[str, str]:
        """Returns the variables with which programs write their counts into a folder."""
        return {
            "GCOV_PREFIX": str(folder / "counts"),
            "GCOV_PREFIX_STRIP": str(len(self.build.root.parts) - 1),
            "LLVM_PROFILE_FILE": str(folder / f"profile-{profile}.raw"),
        }

    async def profile(self, folder: Path) -> Path | None:
        """Merges the profiles in a folder; returns None if there are none: it may be a gcov
        build.
        """
        profiles = sorted(folder.glob("profile-*.raw"))
        if not profiles:
            return None
        merged = folder / "profile.data"
        words = ["llvm-profdata", "merge", "--sparse", *map(str, profiles), "-o", str(merged)]
        await self.run(words, folder)
        return merged

    async def export(self, profile: Path, *options: str) -> bytes:
        """Returns what llvm-cov exports from a profile."""
        words = ["llvm-cov", "export", str(self.build.program), f"--instr-profile={profile}"]
        return await self.run([*words, *options], profile.parent)

    async def gcov(self, folder: Path) -> bytes:
        """Runs `gcov`, which needs the build's notes next to the counters."""
        counts = folder / "counts"
        found = sorted(counts.rglob("*.gcda"))
        for path in found:
            notes = self.build.binaries / path.relative_to(counts).with_suffix(".gcno")
            if not notes.exists():
                message = f"the coverage build does not include its notes file {notes.name}"
                raise InvalidSetting("coverage build", message, notes.name)
            shutil.copyfile(notes, path.with_suffix(".gcno"))
        if not found:
            return b""
        return await self.run(["gcov", "--json-format", "--stdout", *map(str, found)], counts)

    async def names(self, mangled: Iterable[str], folder: Path) -> dict[str, str]:
        """Returns the demangled form of each name."""
        ordered = sorted(set(mangled))
        names: dict[str, str] = {}
        for start in range(0, len(ordered), NAMES_AT_ONCE):
            batch = ordered[start : start + NAMES_AT_ONCE]
            output = await self.run(["c++filt", *batch], folder)
            names.update(zip(batch, output.decode().splitlines(), strict=True))
        return names

    async def run(self, argv: Sequence[str], folder: Path) -> bytes:
        """Runs a tool and returns what it printed; raises if it fails or is not installed."""
        if shutil.which(argv[0]) is None:
            raise InvalidSetting("coverage tool", f"{argv[0]} is not installed", argv[0])
        output, errors = folder / "tool.log", folder / "tool.errors"
        output.unlink(missing_ok=True)
        limits = Limits(self.timeout_ms, output=0)
        ended = await run(
            argv, cwd=folder, log=output, errors=errors, limits=limits, clock=self.clock
        )
        if not ended.ok:
            raise WindlassError(f"{argv[0]} {ended.describe(limits)}: {tail(errors, 500).strip()}")
        return output.read_bytes()

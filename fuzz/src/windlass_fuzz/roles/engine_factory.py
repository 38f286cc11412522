"""Makes the engine of a solver for a build, with the limits of this machine."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.engine import Engine, Target, make_engine
from windlass_fuzz.findings.judge import Judge
from windlass_fuzz.state.pipeline import Pipeline

MIN_MEMORY: Final = 64 * 1024 * 1024
MIN_TIMEOUT_MS: Final = 100


class EngineFactory:
    """Engines of one solver, each with a scratch folder of its own below `work`.

    `env` is added to the environment of the programs they run, and `sources` is the checkout that
    a generator may be in.
    """

    def __init__(
        self, solver: Solver, pipeline: Pipeline, work: Path, env: Mapping[str, str] | None = None,
        sources: Path | None = None,
    ) -> None:  # fmt: skip
        self._env = env or {}
        self._sources = sources
        self._solver = solver
        self._pipeline = pipeline
        self._work = work

    def engine(self, binaries: Path, patience: float = 1.0) -> Engine:
        """Returns the engine for a build; `patience` multiplies the time limit."""
        runtime = self._pipeline.runtime
        scratch = fresh_folder(self._work / "scratch" / runtime.nonce())
        timeout = max(int(self._solver.input_timeout_ms * patience), MIN_TIMEOUT_MS)
        target = Target(
            binaries, self._solver.engine, scratch, runtime.clock, runtime.chance, timeout,
            memory_of(self._solver), self._env, self._solver.signature, self._sources,
        )  # fmt: skip
        return make_engine(str(self._solver.engine["name"]), target)

    def judge(self, binaries: Path) -> Judge:
        """Returns the judge that decides whether inputs break a build."""
        return Judge(
            self.engine(binaries),
            self._solver.kinds,
            lambda patience: self.engine(binaries, patience),
            self._solver.signature.frames,
        )


def cores_of(solver: Solver) -> int:
    """Returns how many cores to use: the solver file's number, or all that this process may use."""
    return solver.cores or len(os.sched_getaffinity(0))


def memory_of(solver: Solver) -> int:
    """Returns the memory limit per run, so that all cores together fit into this machine."""
    with open("/proc/meminfo") as file:
        facts = dict(line.split(":", 1) for line in file)
    available = int(facts["MemAvailable"].split()[0]) * 1024
    return min(solver.memory_bytes, max(available // cores_of(solver), MIN_MEMORY))


def fresh_folder(folder: Path) -> Path:
    """Creates an empty folder, replacing an old one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder

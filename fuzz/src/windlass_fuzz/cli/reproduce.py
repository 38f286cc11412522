"""`windlass fuzz reproduce`: fetches the build and the input of a finding and runs them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from windlass.cli.options.flags import Flag, Json
from windlass.cli.output.text import say, warn
from windlass.domain.values.errors import NotFound, WindlassError
from windlass_fuzz.builds.build_cache import LocalBuild
from windlass_fuzz.cli.app import (
    DEFAULT_LOCATION,
    FuzzContext,
    Location,
    SolverName,
    fuzz,
    run_step,
)
from windlass_fuzz.cli.findings import FindingKey, reproduce_finding
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.findings.bundle import debugging_environment, pack_finding
from windlass_fuzz.findings.evidence import inputs_of
from windlass_fuzz.findings.report import input_name
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.processes.workspace import workspace
from windlass_fuzz.roles.fuzzer import Fuzzer
from windlass_fuzz.sources.mirror import Mirror


@fuzz.command
def reproduce(
    solver: SolverName,
    finding: FindingKey,
    /,
    *,
    commit: Annotated[
        str | None,
        Parameter(help="Use the build of this commit. Default: the one it was found in."),
    ] = None,
    gdb: Annotated[Flag, Parameter(help="Run it in the debugger.")] = False,
    archive: Annotated[
        Path | None,
        Parameter(help="Write build, inputs, report and a script to this .tar.gz file instead."),
    ] = None,
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Fetch the build and the input of a finding and run them; exit with 1 if nothing fails."""
    if gdb or archive is not None:
        _with_files(solver, finding, commit, location, gdb, archive)
    else:
        reproduce_finding(solver, finding, commit, None, location, json)


def _with_files(
    solver: str,
    key: str,
    commit: str | None,
    location: Location,
    gdb: bool,
    archive: Path | None,
) -> None:
    """Packs the files, or starts the debugger with them."""

    async def step(context: FuzzContext) -> None:
        store = FindingStore(context.pipeline)
        found = await store.get(key)
        with workspace(context.work, context.solver.name, "findings") as folder:
            role = Fuzzer(context.solver, context.pipeline, folder)
            build = await role.fetch_build(commit or found.shown_in, found.combination)
            env = role.environment(found.combination)
            inputs: dict[str, Path] = {}
            for number, one in enumerate(sorted(inputs_of(found), key=lambda i: i.size)):
                name = input_name(found) if one.name == found.input else f"{number}-{one.name}"
                path = folder / name
                if not await store.fetch_input(found, path, one.name):
                    continue
                inputs[name] = path
            if input_name(found) not in inputs:
                raise NotFound("input of finding", key)
            if archive is not None:
                name, built = context.solver.name, build.metadata.commit
                root = build.metadata.root
                pack_finding(found, name, build.folder, inputs, archive, built, env, root)
                say(f"wrote {archive}; its run.sh runs the input")
            if gdb:
                shutil.copyfile(inputs[input_name(found)], build.folder / input_name(found))
                if found.kind == "leak":
                    warn("a debugger cannot look for leaks")
                sources = await _sources(context.solver, build, folder)
                _debug(found.command, build.folder, {**os.environ, **env}, sources)

    run_step(solver, location, step, reading=True)


async def _sources(solver: Solver, build: LocalBuild, folder: Path) -> list[str]:
    """Checks out the sources of the build, and returns the gdb command to find them.

    The folder where the build was made may contain another commit by now.
    """
    mirror, checkout = Mirror(solver.repository, folder / "mirror.git"), folder / "sources"
    try:
        await mirror.fetch()
        await mirror.checkout(build.metadata.commit, checkout)
    except WindlassError as error:
        warn(f"the debugger has no sources: {error}")
        return []
    return [f"set substitute-path {build.metadata.root} {checkout}"]


def _debug(command: list[str], folder: Path, env: Mapping[str, str], before: Sequence[str]) -> None:
    """Runs a command in gdb: interactively at a terminal, or else until the crash.

    `before` are gdb commands that come first.
    """
    program = shutil.which("gdb")
    if program is None:
        raise InvalidSetting("gdb", "gdb is not installed; install the package gdb")
    first = [word for line in before for word in ("-iex", line)]
    words = [program, "--quiet", *first, "-ex", "run"]
    if not sys.stdin.isatty():
        words += ["--batch", "-ex", "backtrace"]
    words += ["--args", *command]
    subprocess.run(words, cwd=folder, check=False, env=debugging_environment(env))

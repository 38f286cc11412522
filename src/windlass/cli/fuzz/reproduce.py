"""`windlass fuzz reproduce`: fetches the build and the input of a finding and runs them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from windlass.cli.fuzz.app import (
    DEFAULT_LOCATION,
    FuzzContext,
    Location,
    SolverName,
    fuzz,
    run_step,
)
from windlass.cli.fuzz.findings import FindingKey, reproduce_finding
from windlass.cli.options.flags import Flag, Json
from windlass.cli.output.text import say, warn
from windlass.domain.values.errors import NotFound
from windlass.fuzzing.errors import InvalidSetting
from windlass.fuzzing.findings.bundle import debugging_environment, pack_finding
from windlass.fuzzing.findings.evidence import inputs_of
from windlass.fuzzing.findings.report import input_name
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.processes.workspace import workspace
from windlass.fuzzing.roles.fuzzer import Fuzzer


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
            build = await role.fetch_build(commit or found.found_in, found.combination)
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
                pack_finding(found, name, build.folder, inputs, archive, built, env)
                say(f"wrote {archive}; its run.sh runs the input")
            if gdb:
                shutil.copyfile(inputs[input_name(found)], build.folder / input_name(found))
                if found.kind == "leak":
                    warn("leaks cannot be looked for in a debugger")
                _debug(found.command, build.folder, {**os.environ, **env})

    run_step(solver, location, step, reading=True)


def _debug(command: list[str], folder: Path, env: Mapping[str, str]) -> None:
    """Runs a command in gdb: for a person at a terminal, or else until the crash."""
    program = shutil.which("gdb")
    if program is None:
        raise InvalidSetting("gdb", "gdb is not installed; install the package gdb")
    words = [program, "--quiet", "-ex", "run"]
    if not sys.stdin.isatty():
        words += ["--batch", "-ex", "backtrace"]
    words += ["--args", *command]
    subprocess.run(words, cwd=folder, check=False, env=debugging_environment(env))

"""Packs a finding for a developer: the build, the inputs, the report and a script to run it."""

import io
import shlex
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.report import input_name, render

# In a debugger, a sanitizer must stop the program at the error. Leaks cannot be detected there.
FOR_DEBUGGER: Final = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0",
    "MSAN_OPTIONS": "abort_on_error=1",
    "TSAN_OPTIONS": "abort_on_error=1:halt_on_error=1",
    "UBSAN_OPTIONS": "abort_on_error=1:halt_on_error=1:print_stacktrace=1",
}
SCRIPT: Final = """\
#!/bin/sh
# Runs the input with the build of {commit}; `--gdb` runs it in the debugger.
# Set SOURCES to the full path of a checkout of that commit, and the debugger shows its lines.
cd "$(dirname "$0")/build" || exit 1
cp ../inputs/{name} .
{variables}if [ "$1" = --gdb ]; then
{debugging}  exec gdb ${{SOURCES:+-ex "set substitute-path {root} $SOURCES"}} \\
    -ex run --args {command}
fi
exec {command}
"""


def pack_finding(
    finding: Finding, solver: str, build: Path, inputs: dict[str, Path], archive: Path,
    commit: str = "", env: Mapping[str, str] | None = None, root: str = "",
) -> None:  # fmt: skip
    """Writes a `.tar.gz` with one folder; `inputs` are files by their names in the archive.

    The build is that of `commit`, by default the one that showed the input, and its
    sources were in `root`. `env` is what the fuzzer adds to the environment of its runs.
    """
    top = f"{solver}-{finding.key}"
    first = input_name(finding)
    page = render(finding, solver, f"inputs/{first}", "archive")
    script = SCRIPT.format(
        commit=commit or finding.shown_in, name=shlex.quote(first),
        command=shlex.join(finding.command), root=root,
        variables="".join(_export(name, shlex.quote(value)) for name, value in (env or {}).items()),
        debugging="".join(
            f'  {_export(name, f"{value}${{{name}:+:${name}}}")}'
            for name, value in FOR_DEBUGGER.items()
        ),
    )  # fmt: skip
    with tarfile.open(archive, "w:gz", compresslevel=3) as packed:
        packed.add(build, f"{top}/build")
        for name, path in inputs.items():
            packed.add(path, f"{top}/inputs/{name}")
        _add(packed, f"{top}/report.md", page, 0o644)
        _add(packed, f"{top}/run.sh", script, 0o755)


def debugging_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Returns an environment in which sanitizers stop in a debugger; its own options have
    priority.
    """
    added = {
        name: ":".join(filter(None, (value, env.get(name, ""))))
        for name, value in FOR_DEBUGGER.items()
    }
    return {**env, **added}


def _export(name: str, value: str) -> str:
    return f"export {name}={value}\n"


def _add(packed: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), mode
    packed.addfile(member, io.BytesIO(data))

"""Packs a finding for a developer: the build, the inputs, the report and a script to run it."""

import io
import shlex
import tarfile
from pathlib import Path
from typing import Final

from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.report import input_name, render

SCRIPT: Final = """\
#!/bin/sh
# Runs the input with the build of {commit}; `--gdb` runs it in the debugger.
cd "$(dirname "$0")/build" || exit 1
cp ../inputs/{name} .
[ "$1" = --gdb ] && exec gdb --args {command}
exec {command}
"""


def pack_finding(
    finding: Finding, solver: str, build: Path, inputs: dict[str, Path], archive: Path
) -> None:
    """Writes a `.tar.gz` with one folder; `inputs` are files by their names in the archive."""
    top = f"{solver}-{finding.key}"
    first = input_name(finding)
    page = render(finding, solver, f"inputs/{first}")
    command = shlex.join(finding.command)
    script = SCRIPT.format(commit=finding.found_in, name=shlex.quote(first), command=command)
    with tarfile.open(archive, "w:gz", compresslevel=3) as packed:
        packed.add(build, f"{top}/build")
        for name, path in inputs.items():
            packed.add(path, f"{top}/inputs/{name}")
        _add(packed, f"{top}/report.md", page, 0o644)
        _add(packed, f"{top}/run.sh", script, 0o755)


def _add(packed: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), mode
    packed.addfile(member, io.BytesIO(data))

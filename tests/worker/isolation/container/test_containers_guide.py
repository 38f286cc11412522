"""The commands of the guide to containers run, as an ordinary user with rootless podman."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.cli.guide import BLOCK, FILE, GUIDES
from tests.support.containers import RootlessPodman

MAX_S: Final = 120


def test_every_command_of_the_guide_runs(podman: RootlessPodman) -> None:
    folder = podman.give(Path(tempfile.mkdtemp(dir=podman.folder)))
    path = os.pathsep.join((str(Path(sys.executable).parent), podman.env["PATH"]))
    environment = {**podman.env, "WINDLASS_DATA": str(folder / "data"), "PATH": path}
    up = podman.command([sys.executable, "-m", "windlass", "up", "--port", "0", "--workers", "1"])
    with subprocess.Popen(
        up, env=environment, stdout=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        try:
            assert process.stdout is not None
            assert "windlass is up" in process.stdout.readline()
            said = "\n".join(_carry_out(podman, folder, environment))
        finally:
            process.terminate()
            process.communicate(timeout=MAX_S)
    for expected in ("podman 4", "uid=0", "container:engine", "out/a.txt", "ended with 7"):
        assert expected in said, said
    assert podman.containers() == []


def _carry_out(podman: RootlessPodman, folder: Path, environment: dict[str, str]) -> list[str]:
    said = []
    for block in BLOCK.finditer((GUIDES / "containers.md").read_text()):
        if block["kind"] == "yaml":
            named = FILE.match(block["text"])
            assert named
            (folder / named[1]).write_text(block["text"])
            continue
        done = subprocess.run(
            podman.command(["sh", "-eu", "-c", block["text"]]), cwd=folder, env=environment,
            capture_output=True, text=True, timeout=MAX_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (block["text"], done.stdout, done.stderr)
        said.append(done.stdout)
    return said

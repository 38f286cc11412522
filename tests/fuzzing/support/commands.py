"""Runs `windlass fuzz` as a program, in the world of a test."""

import json
import os
import resource
import subprocess
import sys
from typing import Any

from tests.cli.program import run_here
from tests.fuzzing.support.scripted_solver import World


class Commands:
    """`windlass fuzz` in the folder of a world."""

    def __init__(self, world: World, **variables: str) -> None:
        self.world = world
        (world.folder / "scripted.yaml").write_text(world.description)
        self.env = {
            **os.environ,
            "WINDLASS_FUZZ_BUCKET": str(world.folder / "bucket"),
            "WINDLASS_FUZZ_WORK": str(world.folder / "work"),
            **variables,
        }

    def start(self, *words: str, largest_file: int = -1) -> subprocess.Popen[str]:
        def bound() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        return subprocess.Popen(
            [sys.executable, "-m", "windlass", "fuzz", *words], cwd=self.world.folder,
            env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=bound if largest_file >= 0 else None,  # noqa: PLW1509 - it only asks
        )  # fmt: skip

    def run(self, *words: str, largest_file: int = -1) -> tuple[int, str, str]:
        """Runs a command to its end: here, unless it is to have limits of its own."""
        if largest_file < 0:
            done = run_here(("fuzz", *words), self.env, self.world.folder)
            return done.returncode, done.stdout, done.stderr
        process = self.start(*words, largest_file=largest_file)
        said, complained = process.communicate(timeout=300)
        return process.returncode, said, complained

    def ask(self, *words: str) -> Any:
        code, said, complained = self.run(*words, "--json")
        assert code == 0, complained
        return json.loads(said)

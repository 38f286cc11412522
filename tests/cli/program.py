"""The real program as a process: `windlass up`, and commands against it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LONGEST_S = 60


class Program:
    """`windlass`, with a data directory and without the caller's own settings."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")
        } | {"WINDLASS_DATA": str(data), "COLUMNS": "200"}
        # As where it is installed: jobs may call it, too.
        places = (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
        self.environment["PATH"] = os.pathsep.join(places)

    def __call__(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "windlass", *words],
            env=self.environment | variables, capture_output=True, text=True,
            timeout=LONGEST_S, check=False,
        )  # fmt: skip

    def text(self, *words: str, **variables: str) -> str:
        """What a command that succeeds prints."""
        done = self(*words, **variables)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.strip()

    def json(self, *words: str) -> Any:
        """What a command that succeeds prints as JSON."""
        return json.loads(self.text(*words, "--json"))

    @contextmanager
    def running(self, *words: str) -> "Iterator[subprocess.Popen[str]]":
        """A started command, which ends with the block, whatever happens in it."""
        with self.start(*words) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()
                try:
                    process.communicate(timeout=LONGEST_S)
                finally:
                    process.kill()

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command in a session of its own and read its output."""
        return subprocess.Popen(
            [sys.executable, "-m", "windlass", *words],
            env=self.environment, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

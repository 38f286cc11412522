"""The program under test: `windlass up` as a process, and commands that talk to it.

Short commands run inside the test's own process, which saves the start of an interpreter for each.
Commands that start servers or workers, or that write a log, run as processes of their own.
"""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from windlass.cli.app import run_command
from windlass.cli.root import COMMANDS

MAX_S = 180  # bounds a hang: a busy machine takes a minute for what else takes a second

Done = subprocess.CompletedProcess[str]


class Program:
    """`windlass`, with a data directory and without the caller's own settings."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith("WINDLASS_") or name == "WINDLASS_TESTS"
        } | {
            "WINDLASS_DATA": str(data), "COLUMNS": "200", "WINDLASS_ISOLATION": "process",
            "WINDLASS_CONTAINER_ENGINE": "off",
        }  # fmt: skip
        self._modules = data.with_name(f"{data.name}-modules")
        modules = (str(self._modules), os.environ.get("PYTHONPATH", ""))
        self.environment["PYTHONPATH"] = os.pathsep.join(filter(None, modules))
        # Jobs may call `windlass`, too.
        places = (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
        self.environment["PATH"] = os.pathsep.join(places)

    @property
    def modules(self) -> Path:
        """The folder where workers find functions that tests write."""
        self._modules.mkdir(exist_ok=True)
        return self._modules

    def __call__(self, *words: str, **variables: str) -> Done:
        """Runs a command to its end."""
        if not words or words[0] not in COMMANDS or COMMANDS[words[0]].logs:
            return self.spawn(*words, **variables)
        return run_here(words, self.environment | variables)

    def spawn(self, *words: str, **variables: str) -> Done:
        """Runs a command to its end as a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "windlass", *words],
            env=self.environment | variables, capture_output=True, text=True,
            timeout=MAX_S, check=False,
        )  # fmt: skip

    def text(self, *words: str, **variables: str) -> str:
        """Returns what a command prints; it must succeed."""
        done = self(*words, **variables)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.strip()

    def json(self, *words: str) -> Any:
        """Returns what a command prints as JSON; it must succeed."""
        return json.loads(self.text(*words, "--json"))

    @contextmanager
    def running(
        self, *words: str, stdout: int = subprocess.PIPE
    ) -> "Iterator[subprocess.Popen[str]]":
        """Starts a command and stops it at the end of the block, whatever happens in it."""
        with self.start(*words, stdout=stdout) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()
                try:
                    process.communicate(timeout=MAX_S)
                finally:
                    process.kill()

    def start(self, *words: str, stdout: int = subprocess.PIPE) -> "subprocess.Popen[str]":
        """Starts a command in a session of its own and reads its output."""
        return subprocess.Popen(
            [sys.executable, "-m", "windlass", *words],
            env=self.environment, stdout=stdout, text=True, start_new_session=True,
        )  # fmt: skip


def run_here(words: Sequence[str], environment: dict[str, str], folder: Path | None = None) -> Done:
    """Runs a command to its end in this process, in its own environment and folder."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        chdir(folder or Path.cwd()),
        patch.dict(os.environ, environment, clear=True),
        patch.object(sys, "stdin", io.StringIO()),
        redirect_stdout(out),
        redirect_stderr(errors),
    ):
        code = _exit_code(words)
    return subprocess.CompletedProcess(words, code, _written(out), _written(errors))


def _exit_code(words: Sequence[str]) -> int:
    try:
        run_command(list(words))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()

"""Starting embedded clients in processes of their own, and speaking with them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Neighbour:
    """Another process with an embedded client on the same file."""

    def __init__(self, path: Path, workers: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.embedded.node_process", str(path), str(workers)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip
        assert self._answer() == "ready"

    def ask(self, command: str) -> Any:
        """Send a command and wait for its answer."""
        self.tell(command)
        return self._answer()

    def tell(self, command: str) -> None:
        """Send a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """What it says to a command that it was told."""
        return self._answer()

    def kill(self) -> None:
        """As a crash would."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the other process has ended"
        return json.loads(line)


@contextmanager
def neighbour(path: Path, workers: int) -> Iterator[Neighbour]:
    """One that is ended in the end."""
    started = Neighbour(path, workers)
    try:
        yield started
    finally:
        started.end()

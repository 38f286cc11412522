"""Where started jobs say so: how long it took from submitting one to its first line."""

import socket
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Self

LIMIT_SECONDS = 30
REST_SECONDS = 0.02
MS = 1_000_000


class Beacon:
    """A socket that `functions.say_start` writes to."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "started")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address)
        self._socket.settimeout(LIMIT_SECONDS)
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
        Path(self.address).unlink()

    def latency(self, submit: Callable[[str, int], object]) -> float:
        """Milliseconds from calling `submit(address, number)` to the start of that job.

        Then it rests for a moment, for the next job is to find the system idle.
        """
        self._number += 1
        began = time.monotonic_ns()
        submit(self.address, self._number)
        started = self._wait_for(self._number)
        time.sleep(REST_SECONDS)
        return (started - began) / MS

    def median(self, submit: Callable[[str, int], object], times: int) -> float:
        """The median of so many."""
        return median(self.latency(submit) for _ in range(times))

    def _wait_for(self, number: int) -> int:
        while True:
            try:
                said, at = map(int, self._socket.recv(64).split())
            except TimeoutError:
                raise RuntimeError(f"job {number} did not start in {LIMIT_SECONDS} s") from None
            if said == number:
                return at

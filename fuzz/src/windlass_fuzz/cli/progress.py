"""Progress of a running command: log lines, and a live status line on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.status import Status

from windlass.cli.output.consoles import errors
from windlass.cli.output.text import escape
from windlass.domain.values.quantities import format_duration
from windlass.ports.clock import Clock
from windlass_fuzz.engines.engine import Statistics

EVERY_MS: Final = 60_000  # between lines if there is no terminal


class Progress:
    """Prints progress on standard error; standard output is for results."""

    def __init__(self, clock: Clock, quiet: bool) -> None:
        self._clock = clock
        self._quiet = quiet
        self._began = self._printed_at = clock.now_ms()
        self._status: Status | None = None

    def notify(self, text: str) -> None:
        """Prints a message."""
        if not self._quiet:
            errors.print(escape(text), style="dim", markup=False, highlight=False, soft_wrap=True)

    def fuzzing_progress(self, statistics: Statistics) -> None:
        """Shows the statistics of a campaign."""
        spent = self._clock.now_ms() - self._began
        rate = statistics.executions * 1000 // max(spent, 1)
        self._move(
            f"{format_duration(spent // 1000 * 1000)}: {statistics.executions} executions "
            f"({rate}/s), {statistics.bugs} bugs, {statistics.new_inputs} new inputs"
        )

    def mapping_progress(self, done: int, total: int) -> None:
        """Shows how many tests are mapped."""
        self._move(f"{done} of {total} tests")

    @contextmanager
    def live(self) -> Iterator[None]:
        """Shows a live status line if there is a terminal, and starts its clock."""
        self._began = self._printed_at = self._clock.now_ms()
        if self._quiet or not errors.is_terminal:
            yield
            return
        with errors.status("…") as self._status:
            yield

    def _move(self, text: str) -> None:
        if self._quiet:
            return
        if self._status is not None:
            self._status.update(text)
        elif self._clock.now_ms() - self._printed_at >= EVERY_MS:
            self._printed_at = self._clock.now_ms()
            self.notify(text)

"""What `windlass fuzz` says while it works: lines, and a moving one on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.status import Status

from windlass.cli.output.consoles import errors
from windlass.domain.values.quantities import format_duration
from windlass.fuzzing.engines.engine import Statistics
from windlass.ports.clock import Clock

EVERY_MS: Final = 60_000  # between lines where nothing can move


class Progress:
    """Tells people, on standard error, so that what is printed stays for programs."""

    def __init__(self, clock: Clock, quiet: bool) -> None:
        self._clock = clock
        self._quiet = quiet
        self._began = self._said = clock.now_ms()
        self._status: Status | None = None

    def told(self, text: str) -> None:
        """Something new has begun."""
        if not self._quiet:
            errors.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)

    def counted(self, statistics: Statistics) -> None:
        """How far the fuzzing is."""
        spent = self._clock.now_ms() - self._began
        rate = statistics.executions * 1000 // max(spent, 1)
        self._move(
            f"{format_duration(spent // 1000 * 1000)}: {statistics.executions} executions "
            f"({rate}/s), {statistics.bugs} bugs, {statistics.new_inputs} new inputs"
        )

    def mapped(self, done: int, total: int) -> None:
        """How far the mapping is."""
        self._move(f"{done} of {total} tests")

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Show a line that moves, where there is a terminal; its time begins now."""
        self._began = self._said = self._clock.now_ms()
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
        elif self._clock.now_ms() - self._said >= EVERY_MS:
            self._said = self._clock.now_ms()
            self.told(text)

"""Views that a terminal redraws every second, until Ctrl-C."""

import os
import sys
from collections.abc import Callable
from typing import Final

from rich.console import Console, RenderableType
from rich.live import Live

from windlass.cli.output.consoles import console
from windlass.cli.output.tables import PIPE_WIDTH
from windlass.client.blocking.client import Client
from windlass.clock import RealClock

REFRESH_MS: Final = 1_000


def can_redraw() -> bool:
    """Returns whether the output can be redrawn: not in a pipe, nor with TERM=dumb."""
    return sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def show_live(
    client: Client, draw: Callable[[int, int | None], RenderableType], once: bool = False
) -> None:
    """Draws a view every second until Ctrl-C; once, if asked to or if there is no terminal.

    `draw` gets the width of the terminal, and its height if nothing can be shown below that.
    """
    if once or not can_redraw():
        shown = console if console.is_terminal else Console(width=PIPE_WIDTH)
        shown.print(draw(shown.width, None))
        return
    clock = RealClock()
    first = draw(console.width, console.height)
    with Live(first, console=console, auto_refresh=False, screen=True) as live:
        try:
            while True:
                client.run(clock.sleep_ms(REFRESH_MS))
                live.update(draw(console.width, console.height), refresh=True)
        except KeyboardInterrupt:
            return

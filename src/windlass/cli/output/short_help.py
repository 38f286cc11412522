"""The help of commands with many options: those that people need, and a way to see the rest."""

from collections.abc import Collection
from typing import Any, Final

from cyclopts import App
from cyclopts.help import DefaultFormatter, HelpEntry, HelpPanel
from rich.console import Console, ConsoleOptions

from windlass.cli.output.text import say
from windlass.domain.values.quantities import counted

_JOB: Final = (
    "--queue", "--priority", "--after", "--timeout", "--retries", "--env", "--input",
    "--artifact", "--requires", "--name",
)  # fmt: skip

# By command: the options that `--help` shows.
NEEDED: Final = {
    "up": (
        "--data", "--port", "--listen", "--workers", "--slots", "--store", "--import", "--app",
        "--env-file", "--reload",
    ),
    "server": (
        "--store", "--blobs", "--listen", "--data", "--tls-cert", "--tls-key", "--tls-client-ca",
        "--allowed-host", "--import", "--config",
    ),
    "worker": (
        "--server", "--code", "--name", "--slots", "--import", "--app", "--isolation",
        "--env-file", "--reload", "--state",
    ),
    "submit": _JOB,
    "run": _JOB,
}  # fmt: skip


def print_short_help(app: App, command: str) -> None:
    """Prints the options that people need, and how to see the others."""
    shown = app[command]
    formatter, before = ShortHelp(frozenset(NEEDED[command])), shown.help_formatter
    shown.help_formatter = formatter
    try:
        app.help_print([command])
    finally:
        shown.help_formatter = before
    say(f"{counted(formatter.left_out, 'more option')}: windlass {command} --help-all")


class ShortHelp:
    """Formats help with the needed options only."""

    def __init__(self, needed: Collection[str]) -> None:
        self._needed = needed
        self.left_out = 0

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Prints how the command is called."""
        DefaultFormatter().render_usage(console, options, usage)

    def render_description(self, console: Console, options: ConsoleOptions, text: Any) -> None:
        """Prints what the command does."""
        DefaultFormatter().render_description(console, options, text)

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Prints one group of options, unless none of them is needed."""
        kept = [one for one in panel.entries if self._is_needed(one)]
        self.left_out += len(panel.entries) - len(kept)
        if kept:
            DefaultFormatter()(console, options, panel.copy(entries=kept))

    def _is_needed(self, entry: HelpEntry) -> bool:
        is_argument = entry.positional_label is not None
        return is_argument or any(name in self._needed for name in entry.names)

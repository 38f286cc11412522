"""The help of commands with many options: the most used first, and a way to see the rest."""

from collections.abc import Collection, Sequence
from typing import Final

from cyclopts import App
from cyclopts.help import DefaultFormatter, HelpEntry, HelpPanel
from rich.console import Console, ConsoleOptions

from windlass.cli.output.text import say
from windlass.domain.values.quantities import counted

_JOB: Final = (
    "--queue", "--priority", "--name", "--env", "--input", "--artifact", "--after", "--timeout",
    "--retries", "--resources", "--requires", "--key",
)  # fmt: skip
_SCHEDULE: Final = (
    "--every", "--template", "--param", "--jobs", "--zone", "--overlap", "--catch-up",
    "--priority", "--paused", "--namespace", "--json", "--server",
)  # fmt: skip

# By command: the options that `--help` shows, in the order in which people set them.
NEEDED: Final = {
    "up": (
        "--workers", "--slots", "--import", "--app", "--data", "--port", "--listen", "--store",
        "--env-file", "--isolation", "--reload", "--config",
    ),
    "server": (
        "--store", "--blobs", "--listen", "--data", "--tls-cert", "--tls-key", "--tls-client-ca",
        "--allowed-host", "--import", "--config", "--set", "--log-level",
    ),
    "worker": (
        "--server", "--code", "--name", "--slots", "--resources", "--import", "--app",
        "--env-file", "--secret", "--isolation", "--state", "--reload",
    ),
    "submit": _JOB,
    "run": _JOB,
    "jobs": (
        "--state", "--queue", "--task", "--name", "--label", "--workflow", "--dead", "--limit",
        "--columns", "--watch", "--json", "--server",
    ),
    "schedules apply": _SCHEDULE,
    "schedules put": _SCHEDULE,
    "events": (
        "--follow", "--last", "--since", "--after", "--kind", "--state", "--job", "--worker",
        "--json", "--server",
    ),
}  # fmt: skip


def print_sorted_help(app: App, words: Sequence[str], *, whole: bool) -> bool:
    """Prints the options that people set most and how to see the others, or `whole`: all of them.

    Returns False, and prints nothing, for a command with few options.
    """
    chain, apps, _ = app.parse_commands(words)
    command = " ".join(chain)
    if command not in NEEDED:
        return False
    formatter, before = SortedHelp(NEEDED[command], whole), apps[-1].help_formatter
    apps[-1].help_formatter = formatter
    try:
        app.help_print(chain)
    finally:
        apps[-1].help_formatter = before
    if not whole:
        say(f"{counted(formatter.left_out, 'more option')}: windlass {command} --help-all")
    return True


class SortedHelp(DefaultFormatter):
    """Formats help with the needed options first, and the others only if it is `whole`."""

    def __init__(self, needed: Collection[str], whole: bool) -> None:
        super().__init__()
        self._places = {name: place for place, name in enumerate(needed)}
        self._whole = whole
        self.left_out = 0

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Prints one group of commands or options, unless nothing of it is needed."""
        if panel.format == "command":
            super().__call__(console, options, panel)
            return
        kept = sorted(panel.entries, key=self._place)
        if not self._whole:
            kept = [one for one in kept if self._place(one) < len(self._places)]
        self.left_out += len(panel.entries) - len(kept)
        if kept:
            super().__call__(console, options, panel.copy(entries=kept))

    def _place(self, entry: HelpEntry) -> int:
        """Returns where an entry belongs: arguments come first, other options last."""
        if entry.positional_label is not None:
            return -1
        last = len(self._places)
        return min((self._places.get(name, last) for name in entry.names), default=last)

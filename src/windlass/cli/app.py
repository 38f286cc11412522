"""The `windlass` program.

This module must stay light: it answers `windlass --version` alone and loads everything else, the
command line library included, when a command needs it.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final

from windlass.cli.exit_with_s3 import run_and_exit
from windlass.cli.output.exit_codes import FAILED, INTERRUPTED
from windlass.domain.values.errors import WindlassError

HELP_FLAGS: Final = ("--help", "-h")
VERSION_FLAG: Final = "--version"
WORKER: Final = "worker"


def main() -> None:
    """Runs the `windlass` program."""
    run_and_exit(lambda: run_command(sys.argv[1:]))


def run_command(words: Sequence[str]) -> None:
    """Runs one command line and exits with its code."""
    if list(words) == [VERSION_FLAG]:
        from importlib.metadata import version

        sys.stdout.write(f"{version('windlass')}\n")
        return
    if words and words[0] == WORKER:
        from windlass.cli.commands.start.hide_secrets import restart_without_secrets

        restart_without_secrets(words)
    from cyclopts import CycloptsError

    from windlass.cli.root import app

    _prepare(words)
    try:
        app(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        from windlass.cli.output.errors import fail_usage

        fail_usage(error)
    except WindlassError as error:
        from windlass.cli.output.errors import fail

        fail(error)
    except ModuleNotFoundError as error:
        from windlass.cli.output.errors import fail
        from windlass.domain.values.extras import missing_extra

        missing = missing_extra(error)
        if missing is None:
            raise
        fail(missing)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of the output has closed it; without this, Python complains at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(FAILED) from None
    except OSError as error:
        if error.filename is None:
            raise
        from windlass.cli.output.errors import fail_on_file

        fail_on_file(error)


def _prepare(words: Sequence[str]) -> None:
    """Does what only some commands need, so that the others do not pay for it."""
    from windlass.cli.root import COMMANDS, COMPLETION_FLAG, load_completion, load_help

    first = words[0] if words else HELP_FLAGS[0]
    if first in HELP_FLAGS:
        load_help()
    elif first == COMPLETION_FLAG:
        load_completion()
    elif first in COMMANDS and COMMANDS[first].logs:
        from windlass.cli.output.logging import configure_logging

        configure_logging()

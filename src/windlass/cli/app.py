"""The `windlass` program.

This module must stay light: it answers `windlass --version` alone and loads everything else, the
command line library included, when a command needs it.
"""

import errno
import gc
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Final

from windlass.cli.output.exit_codes import FAILED, INTERRUPTED, OK
from windlass.domain.values.errors import WindlassError

HELP_FLAGS: Final = ("--help", "-h")
HELP_ALL: Final = "--help-all"
VERSION_FLAG: Final = "--version"
WORKER: Final = "worker"
SERVICES: Final = ("server", "up", WORKER)  # they export spans of their own
S3_CLIENT: Final = "obstore"

# Objects between two garbage collections. Loading a server makes 90,000 that all stay; at Python's
# 700, the collector takes a tenth of that time and finds nothing.
LOADING: Final = 50_000


def main() -> None:
    """Runs the `windlass` program."""
    gc.set_threshold(LOADING)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Otherwise a pipe, such as a service manager's, gets lines late and in blocks.
        sys.stdout.reconfigure(line_buffering=True)
    run_and_exit(lambda: run_command(sys.argv[1:], alone=True))


def run_command(words: Sequence[str], *, alone: bool = False) -> None:
    """Runs one command line and exits with its code; `alone`: this process does nothing else."""
    if list(words) == [VERSION_FLAG]:
        from importlib.metadata import version

        sys.stdout.write(f"{version('windlass')}\n")
        return
    words = _command_first(words)
    if words and words[0] == WORKER:
        from windlass.cli.commands.start.hidden_from_jobs import restart_without_secrets

        restart_without_secrets(words)
    from cyclopts import CycloptsError

    from windlass.cli.root import app, find_command, load_command

    command = find_command(words[0]) if words else None
    if alone and command is not None and command.runs_foreign_programs:
        from windlass.worker.keeper.processes import become_private

        become_private()  # they run as the same user
    _prepare(words)
    _start_tracing(words)
    try:
        if words:
            load_command(words[0])
        if not _helped_in_order(words):
            app(_with_plain_help(words), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        from windlass.cli.output.errors import fail_usage

        fail_usage(error)
    except WindlassError as error:
        from windlass.cli.output.errors import fail

        fail(error, _before_command(words))
    except ModuleNotFoundError as error:
        from windlass.cli.output.errors import fail
        from windlass.domain.values.errors import missing_extra

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
        if error.filename is None and error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        from windlass.cli.output.errors import fail_on_file

        fail_on_file(error)


def _command_first(words: Sequence[str]) -> Sequence[str]:
    """Moves shared options that stand before the command behind it."""
    if not any(word.startswith("-") for word in words[:2]):
        return words
    from windlass.cli.before_command import command_first

    try:
        return command_first(words, _is_group)
    except WindlassError as error:
        from windlass.cli.output.errors import fail

        fail(error)


def _is_group(name: str) -> bool:
    """Returns whether a command has commands of its own."""
    from windlass.cli.root import app, find_command

    return find_command(name) is not None and any(not one.startswith("-") for one in app[name])


def _start_tracing(words: Sequence[str]) -> None:
    """Exports spans of commands, if OpenTelemetry's variables ask for it."""
    if words and words[0] not in SERVICES and any("OTEL_EXPORTER_OTLP" in v for v in os.environ):
        from windlass.tracing.exporting import trace_program

        trace_program("windlass-client")


def _helped_in_order(words: Sequence[str]) -> bool:
    """Prints the help of a command that sorts its options, if it was asked for."""
    flags = (*HELP_FLAGS, HELP_ALL)
    own = _before_command(words)
    command = [word for word in own if word not in flags]
    if len(command) == len(own):
        return False
    from windlass.cli.output.sorted_help import print_sorted_help
    from windlass.cli.root import app

    return print_sorted_help(app, command, whole=HELP_ALL in own)


def _with_plain_help(words: Sequence[str]) -> list[str]:
    """Returns the words with --help for --help-all, which commands with few options have too."""
    own = _before_command(words)
    plain = [HELP_FLAGS[0] if word == HELP_ALL else word for word in own]
    return [*plain, *words[len(own) :]]


def _before_command(words: Sequence[str]) -> Sequence[str]:
    """Returns the words before `--`; those after it belong to a job."""
    return words[: words.index("--")] if "--" in words else words


def _prepare(words: Sequence[str]) -> None:
    """Loads what only some commands need, so that the others start faster."""
    from windlass.cli.root import COMMANDS, COMPLETION_FLAG, load_completion, load_help

    first = words[0] if words else HELP_FLAGS[0]
    if first in HELP_FLAGS:
        load_help()
    elif first == COMPLETION_FLAG:
        load_completion()
    elif first in COMMANDS and COMMANDS[first].logs:
        with _hidden("rich"):  # structlog prints tracebacks in color with it, and we do not
            from windlass.cli.output.logging import configure_logging

        configure_logging()


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    """Lets an optional package seem missing to what is imported meanwhile, unless it is loaded."""
    missing: dict[str, ModuleType | None] = {} if package in sys.modules else {package: None}
    sys.modules.update(missing)  # type: ignore[arg-type]  # Python's own mark of a missing module
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]


def run_and_exit(run: Callable[[], None]) -> None:
    """Runs the program and exits with its code; at once, if the S3 client was used.

    A thread of the S3 client that answers during interpreter shutdown aborts the process
    (`blobs/last_answers.py` explains why). Normally the program waits for answers, but an
    interrupted command may have abandoned requests whose answers arrive at any time. So a command
    that loaded the S3 client flushes its output and exits without shutting down the interpreter.
    """
    try:
        run()
        code: object = OK
    except SystemExit as end:
        code = end.code
        if S3_CLIENT not in sys.modules or isinstance(code, str):
            raise
    finally:
        gc.freeze()  # Otherwise Python's last garbage collection takes 0.2 s.
    if S3_CLIENT in sys.modules:
        _exit_now(code)


def _exit_now(code: object) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or FAILED
    os._exit(code if isinstance(code, int) else OK)

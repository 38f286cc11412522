"""Plain lines and JSON, with a little colour on a terminal.

Most commands print nothing else, so this module must stay free of rich.
"""

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TextIO

from windlass.cli.output.escaping import escape, escape_json, escape_log
from windlass.domain.values.errors import InvalidInput

if TYPE_CHECKING:
    from windlass.messages.workers import Changed

BOLD: Final = "1"
DIM: Final = "2"
RED: Final = "31"
YELLOW: Final = "33"
BOLD_GREEN: Final = "1;32"
RESET: Final = "\x1b[0m"
HANGING: Final = "  "  # before the further lines of a text that is broken


def say(text: object, style: str = "") -> None:
    """Prints one line; `style` is used on a terminal only."""
    sys.stdout.write(f"{_styled(escape(str(text)), style, sys.stdout)}\n")


def say_wrapped(text: str, indent: str = "", style: str = "") -> None:
    """Prints text; a terminal gets it broken between words, under its own indent."""
    if not sys.stdout.isatty():
        say(indent + text, style)
        return
    import shutil
    import textwrap

    room = shutil.get_terminal_size().columns
    for line in textwrap.wrap(
        text, room, initial_indent=indent, subsequent_indent=indent + HANGING,
        break_on_hyphens=False, break_long_words=False,
    ) or [indent]:  # fmt: skip
        say(line, style)


def warn(text: object, style: str = "") -> None:
    """Prints one line to standard error."""
    sys.stderr.write(f"{_styled(escape(str(text)), style, sys.stderr)}\n")


def print_json(value: Any) -> None:
    """Prints one JSON document."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.write(escape_json(text.decode()) + "\n")


def print_answer(value: Any, json: bool, text: object) -> None:
    """Prints an answer as JSON if that was asked for, else as one line."""
    if json:
        print_json(value)
    else:
        say(text)


def print_change(changed: "Changed", json: bool) -> None:
    """Prints whether a command changed anything."""
    print_answer(changed, json, "done" if changed.applied else "nothing to do")


def copy_log(chunks: Iterable[bytes], raw: bool = False) -> None:
    """Copies a log to standard output as it arrives.

    Only a pipe or file may get it byte for byte (`raw`): a terminal would act on what it contains.
    """
    if raw and sys.stdout.isatty():
        raise InvalidInput("--raw", "used with a pipe or a file", "a terminal")
    pieces = chunks if raw else (text.encode() for text in escape_log(chunks))
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    if sys.stdout.isatty():
        sys.stdout.write(RESET)  # colours end with the log


def _styled(text: str, style: str, stream: TextIO) -> str:
    plain = not style or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return text if plain or not stream.isatty() else f"\x1b[{style}m{text}{RESET}"

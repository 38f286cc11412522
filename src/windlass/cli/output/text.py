"""Plain lines and JSON, with a little colour on a terminal.

Most commands print nothing else, so this module must stay free of rich.
"""

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from windlass.wire.workers import Changed

BOLD: Final = "1"
DIM: Final = "2"
RED: Final = "31"
YELLOW: Final = "33"
BOLD_GREEN: Final = "1;32"


def say(text: object, style: str = "") -> None:
    """Prints one line; `style` is used on a terminal only."""
    sys.stdout.write(f"{_styled(str(text), style, sys.stdout)}\n")


def warn(text: object, style: str = "") -> None:
    """Prints one line to standard error."""
    sys.stderr.write(f"{_styled(str(text), style, sys.stderr)}\n")


def print_json(value: Any) -> None:
    """Prints one JSON document."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.write(text.decode() + "\n")


def print_change(changed: "Changed", json: bool) -> None:
    """Prints whether a command changed anything."""
    if json:
        print_json(changed)
    else:
        say("done" if changed.applied else "nothing to do")


def copy_log(chunks: Iterable[bytes]) -> None:
    """Copies a log to standard output as it arrives."""
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


def _styled(text: str, style: str, stream: TextIO) -> str:
    plain = not style or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return text if plain or not stream.isatty() else f"\x1b[{style}m{text}\x1b[0m"

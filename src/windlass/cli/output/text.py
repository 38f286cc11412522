"""Plain lines and JSON, with a little colour on a terminal.

Most commands print nothing else, so this module must stay free of rich. Names, reasons and logs may
contain control characters: sequences that set the title, write to the clipboard or redraw what was
printed before. They are shown as `\\x1b` and the like. In a log, colours pass, and nothing else
that begins with an escape character.
"""

import codecs
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TextIO

from windlass.domain.values.errors import InvalidInput

if TYPE_CHECKING:
    from windlass.messages.workers import Changed


# Controls (C0 without tab and newline, DEL, C1), and characters that reorder or hide text.
_CONTROL: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_HIDDEN: Final = "\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
_UNSAFE: Final = re.compile(f"[{_CONTROL}{_HIDDEN}]")
_COLOUR: Final = r"\x1b\[[0-9;:]{0,40}m"
_UNSAFE_IN_LOG: Final = re.compile(f"({_COLOUR})|(?!\r)[{_CONTROL}{_HIDDEN}]")
_UNFINISHED: Final = re.compile(r"\x1b(\[[0-9;:]{0,40})?\Z")


def escape(text: str) -> str:
    """Returns the text with everything a terminal would act on made visible."""
    return _UNSAFE.sub(_visible, text)


def escape_line(text: str) -> str:
    """Does the same for text that must stay on one line."""
    return escape(text).replace("\n", "\\n").replace("\t", " ")


def escape_json(document: str) -> str:
    """Escapes what JSON allows and terminals act on; the document keeps its meaning."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def escape_log(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yields a log as text that is safe to print; its colours stay."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    rest = ""
    for chunk in chunks:
        text = rest + decoder.decode(chunk)
        cut = _UNFINISHED.search(text)
        text, rest = (text[: cut.start()], text[cut.start() :]) if cut else (text, "")
        yield _UNSAFE_IN_LOG.sub(_visible_in_log, text)
    yield escape(rest + decoder.decode(b"", final=True))


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _visible_in_log(found: re.Match[str]) -> str:
    return found[0] if found[1] else _visible(found)


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

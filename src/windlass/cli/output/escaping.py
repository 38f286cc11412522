"""Makes text from outside harmless on a terminal.

Names, reasons and logs may contain control characters: sequences that set the title, write to the
clipboard or redraw what was printed before. They are shown as `\\x1b` and the like. In a log,
colours pass, and nothing else that begins with an escape character.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Final

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

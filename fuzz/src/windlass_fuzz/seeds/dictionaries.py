"""Dictionaries in AFL's format, which libFuzzer reads too: one quoted word per line."""

import re
from collections.abc import Iterable
from typing import Final

from windlass_fuzz.seeds.limits import SeedsRefused

MAX_WORD: Final = 128  # bytes; afl-fuzz refuses longer ones
MAX_WORDS: Final = 10_000
MAX_FILE: Final = 1024 * 1024
_LINE: Final = re.compile(rb'(?:[\w.-]*(?:@(\d{1,9}))?\s*=\s*)?"((?:[^"\\]|\\.)*)"\s*(?:#.*)?\Z')
_ESCAPE: Final = re.compile(rb"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_NAMED: Final = {b"\\": b"\\", b'"': b'"', b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0"}


def parse_dictionary(content: bytes) -> list[bytes]:
    """Returns the words of a dictionary; the message of an error names the line."""
    if len(content) > MAX_FILE:
        raise SeedsRefused(f"a dictionary has at most {MAX_FILE} bytes")
    words: dict[bytes, None] = {}
    for number, raw in enumerate(content.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith(b"#"):
            continue
        found = _LINE.match(line)
        if found is None:
            raise SeedsRefused(f'line {number} of the dictionary is not of the form name="word"')
        word = _ESCAPE.sub(_unescaped, found[2])
        if 0 < len(word) <= MAX_WORD:
            words[word] = None
    if len(words) > MAX_WORDS:
        raise SeedsRefused(f"a dictionary has at most {MAX_WORDS} words")
    return list(words)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    if len(code) == 3:
        return bytes([int(code[1:], 16)])
    if code not in _NAMED:
        raise SeedsRefused(f"the dictionary has an unknown escape, {escape[0]!r}")
    return _NAMED[code]


def format_dictionary(words: Iterable[bytes]) -> bytes:
    """Returns the words in the form that both afl-fuzz and libFuzzer accept."""
    return b"".join(b'"%s"\n' % b"".join(map(_escaped, word)) for word in words)


def _escaped(byte: int) -> bytes:
    if 32 <= byte < 127 and byte not in b'"\\':
        return bytes([byte])
    return b"\\x%02x" % byte

"""The colours at the start of a page of a log: those set by the lines before it.

Only a limited number of bytes before the page is read, so a colour set earlier is not known.
"""

import re
from typing import Final

from windlass.engine.attempts.log_segments import Logs
from windlass.engine.files.log_index import LineIndex, bytes_of

LOOK_BACK: Final = 64 * 1024  # bytes before a page
MAX_SEQUENCES: Final = 32
SEQUENCE: Final = re.compile(rb"\x1b\[([0-9;:]{0,64})m")


async def colours_before(logs: Logs, index: LineIndex, start: int) -> bytes:
    """Returns the colour escape sequences that are in force at byte `start`."""
    begin = max(0, start - LOOK_BACK)
    data = b""
    for piece in index.pieces[index.piece_at(begin) :]:
        if piece.start >= start:
            break
        if piece.key:  # Missing bytes have no colours.
            part = piece._replace(end=min(piece.end, start))
            data += await bytes_of(logs, part, max(piece.start, begin))
    return in_force(data)


def in_force(data: bytes) -> bytes:
    """Returns a text's escape sequences from the last reset on, at most the last few."""
    found: list[bytes] = []
    for match in SEQUENCE.finditer(data):
        codes = re.split(rb"[;:]", match[1])
        if not codes[0].strip(b"0"):
            found.clear()
        if len(codes) > 1 or codes[0].strip(b"0"):
            found.append(match[0])
    return b"".join(found[-MAX_SEQUENCES:])

"""What names of jobs have in common: `test[3.12,linux]` and `frame-12-encode` are many alike."""

import re
from typing import Final

_DIGITS: Final = re.compile(r"\d+")
_PIECES: Final = re.compile(r"[-_./: #]+")
_SEPARATORS: Final = "-_./: #"
NUMBER: Final = "#"


def stem_of(name: str) -> str:
    """Returns a job's name without its place in a matrix and with `#` for numbers.

    The number that a name ends with is left out: `test[1]`, `test-1` and `test` are alike.
    """
    cut = name.find("[")
    if cut > 0 and name.endswith("]"):
        name = name[:cut]
    return _DIGITS.sub(NUMBER, name).rstrip(_SEPARATORS) or name


def first_piece(stem: str) -> str:
    """Returns what a name begins with: `build` of `build-linux`."""
    return _PIECES.split(stem, 1)[0] or stem


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Returns a key that sorts `a-2` before `a-10`."""
    pieces = re.findall(r"\d+|\D+", name)
    return tuple((int(one), "") if one.isdecimal() else (-1, one) for one in pieces)

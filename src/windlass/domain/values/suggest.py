"""Suggests the known word closest to a misspelt one."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

CLOSE: Final = 0.6
MAX_KNOWN: Final = 1_000  # Comparing with more words would take too long.


def did_you_mean(word: str, known: Iterable[str], cutoff: float = CLOSE) -> str:
    """Returns "; did you mean X?" for the closest known word, or "" if none is close."""
    lowered = {name.lower(): name for name in known}
    if len(lowered) > MAX_KNOWN:
        return ""
    close = get_close_matches(word.lower(), lowered, n=1, cutoff=cutoff)
    return f"; did you mean {lowered[close[0]]}?" if close else ""

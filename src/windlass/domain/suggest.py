"""Suggests the known word closest to a misspelt one."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns "; did you mean X?" for the closest known word, or "" if none is close."""
    lowered = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), lowered, n=1)
    return f"; did you mean {lowered[close[0]]}?" if close else ""

"""Valid names, suggestions for misspelt names, and patterns given by callers.

Callers' regular expressions use RE2, whose time grows linearly with the text, whatever the pattern:
a hostile one cannot keep a server busy, as it could with the module `re`.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from windlass.domain.values.errors import InvalidInput

NAME_LIMIT: Final = 200


def is_name(value: str, limit: int = NAME_LIMIT) -> bool:
    """Returns whether a text can be a name."""
    return 0 < len(value) <= limit and value.isprintable()


def check_name(field: str, value: object, limit: int = NAME_LIMIT) -> None:
    """Raises `InvalidInput` unless the value can be a name, of at most `limit` characters."""
    if not isinstance(value, str) or not is_name(value, limit):
        raise InvalidInput(field, f"printable text of 1 to {limit} characters", value)


CLOSE: Final = 0.6
MAX_KNOWN: Final = 1_000  # Comparing with more words would take too long.


def did_you_mean(word: str, known: Iterable[str], cutoff: float = CLOSE) -> str:
    """Returns "; did you mean X?" for the closest known word, or "" if none is close."""
    lowered = {name.lower(): name for name in known}
    if len(lowered) > MAX_KNOWN:
        return ""
    close = get_close_matches(word.lower(), lowered, n=1, cutoff=cutoff)
    return f"; did you mean {lowered[close[0]]}?" if close else ""


PATTERN_LIMIT: Final = 500  # characters
PATTERN_MEMORY: Final = 4 * 2**20  # bytes of a compiled pattern

Finds = Callable[[str], bool]


@lru_cache(maxsize=100)
def compile_pattern(pattern: str) -> Finds:
    """Returns a function that searches a text in which ^ and $ match at line ends.

    Raises `InvalidInput` for a bad pattern.
    """
    import re2

    if len(pattern) > PATTERN_LIMIT:
        raise InvalidInput("regex", f"at most {PATTERN_LIMIT} characters", len(pattern))
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY
    try:
        search = re2.compile(f"(?m){pattern}", options).search
    except re2.error as error:
        raw = error.args[0] if error.args else b""
        message = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
        raise InvalidInput("regex", "a regular expression of RE2", pattern, message) from None
    return lambda text: search(text) is not None


def looks_at_lines(pattern: str) -> bool:
    """Returns whether a match in a text surely remains one when lines are added around it.

    Flags and the anchors of the whole text (\\A, \\z) may make a difference.
    """
    return not any(part in pattern for part in ("\\A", "\\z", "(?"))

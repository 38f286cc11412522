"""Regular expressions that callers send.

They are those of RE2, which takes time in proportion to the text whatever the pattern: a hostile
one cannot keep a server busy, as it can with the module `re`.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from windlass.domain.values.errors import InvalidInput

PATTERN_LIMIT: Final = 500  # characters
PATTERN_MEMORY: Final = 4 * 2**20  # bytes of a compiled pattern

Finds = Callable[[str], bool]


@lru_cache(maxsize=100)
def compile_pattern(pattern: str) -> Finds:
    """Returns a function that searches a text, in which ^ and $ are the ends of lines.

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
        told = error.args[0] if error.args else b""
        said = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        raise InvalidInput("regex", "a regular expression of RE2", pattern, said) from None
    return lambda text: search(text) is not None


def looks_at_lines(pattern: str) -> bool:
    """Returns whether a match in a text is certainly one among other lines before and after it.

    Flags and the ends of the whole text (\\A, \\z) may make a difference.
    """
    return not any(part in pattern for part in ("\\A", "\\z", "(?"))

"""What a key may look like, so that none leads out of the place it belongs to."""

import re
from typing import Final

from windlass.domain.values.errors import InvalidInput

LONGEST: Final = 500
_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")


def check_key(key: str, field: str = "key") -> str:
    """The key itself, if it is one."""
    if len(key) > LONGEST or not all(map(_SEGMENT.match, key.split("/"))):
        expected = f"names of letters, digits, - and _ divided by /, at most {LONGEST} characters"
        raise InvalidInput(field, expected, key)
    return key


def check_prefix(prefix: str) -> str:
    """A folder; its last slash may be there or not."""
    folder = prefix.removesuffix("/")
    return check_key(folder, "prefix") if folder else ""

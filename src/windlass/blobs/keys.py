"""Checks blob keys, so that none leads out of its directory or prefix."""

import re
from typing import Final

from windlass.domain.values.errors import InvalidInput

MAX_KEY: Final = 500
_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")


def check_key(key: str, field: str = "key") -> str:
    """Returns the key if it is valid."""
    if len(key) > MAX_KEY or not all(map(_SEGMENT.match, key.split("/"))):
        expected = f"names of letters, digits, - and _ separated by /, at most {MAX_KEY} characters"
        raise InvalidInput(field, expected, key)
    return key


def check_prefix(prefix: str) -> str:
    """Returns a folder prefix without its trailing slash."""
    folder = prefix.removesuffix("/")
    return check_key(folder, "prefix") if folder else ""

"""What a name may look like: of jobs, namespaces, tokens and people."""

from typing import Final

from windlass.domain.values.errors import InvalidInput

NAME_LIMIT: Final = 200


def is_name(value: str) -> bool:
    """Returns whether a text can be a name."""
    return 0 < len(value) <= NAME_LIMIT and value.isprintable()


def check_name(field: str, value: object) -> None:
    """Raises `InvalidInput` unless the value can be a name."""
    if not isinstance(value, str) or not is_name(value):
        limit = f"printable text of 1 to {NAME_LIMIT} characters"
        raise InvalidInput(field, limit, value)

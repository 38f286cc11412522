"""How attempts are numbered: 1, 2, 3 for people, and more in the stores after a restore."""

from typing import Final

PER_EPOCH: Final = 1_000_000


def next_attempt(last: int, least: int) -> int:
    """Returns the number after `last`; `least` is the first of this epoch, 0 before a restore."""
    return max(last + 1, least + last % PER_EPOCH)


def shown_attempt(number: int, handed_back: int = 0) -> int:
    """Returns the number that people see; 0 before the first attempt."""
    return (number - 1) % PER_EPOCH + 1 - handed_back if number else 0

"""The functions that the application submits."""

import windlass


@windlass.task
def count_words(text: str) -> int:
    """Returns how many words a text has."""
    return len(text.split())

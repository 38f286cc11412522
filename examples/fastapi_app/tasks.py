"""The functions that the application submits."""

import windlass


@windlass.task
def shout(text: str) -> str:
    """Returns a text in capitals."""
    return text.upper()

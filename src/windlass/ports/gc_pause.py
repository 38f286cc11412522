"""Pauses the garbage collector during large submissions, and other long work in threads.

They create a million objects that all live until the end. The collector would walk them
again and again and find nothing, which takes a third of the time, and everybody waits for it.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MANY: Final = 5_000  # jobs in a submission from which a pause pays off

_pauses: list[bool] = []  # one for each open pause: whether the collector was on before


def spare_what_is_loaded() -> None:
    """Lets the collector never look again at what exists now; for a program that has started.

    Modules live as long as the program. To walk them takes the collector about 0.1 s each time.
    """
    gc.collect()
    gc.freeze()


def pause() -> None:
    """Pauses the collector until `resume` was called as often."""
    _pauses.append(gc.isenabled() if not _pauses else _pauses[0])
    gc.disable()


def resume() -> None:
    """Ends one pause; the collector goes on after the last."""
    was_on = _pauses.pop()
    if not _pauses and was_on:
        gc.enable()


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pauses the collector; it resumes when the last open pause ends."""
    pause()
    try:
        yield
    finally:
        resume()
